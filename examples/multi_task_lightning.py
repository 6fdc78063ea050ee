"""The same as `multi_task.py` in a Lightning Trainer; both give the same parameters, bit by bit.

Lightning leaves the backward pass to us (manual optimization), and saves the weighting's state with
the model, as it is one of its modules. A few seconds on one thread:

    python examples/multi_task_lightning.py runs/lightning
    python examples/multi_task_lightning.py runs/lightning --epochs 40 --resume
"""

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import TensorBoardLogger
from multi_task import arguments, batches, curves, losses_of, make_model, make_weighting
from multi_task_problem import census, digits
from torch import nn

import gradwright as gw


class MultiTask(L.LightningModule):
    def __init__(self, problem):
        super().__init__()
        self.automatic_optimization = False
        self.problem = problem
        self.model, self.weighting = make_model(problem), make_weighting(problem)
        self.measures = nn.ModuleDict({name: t.measure() for name, t in problem.tasks.items()})

    def training_step(self, batch):
        optimizer = self.optimizers()
        losses = losses_of(self.problem, self.model(batch["inputs"]), batch)
        step = gw.backward(losses, weighting=self.weighting)
        optimizer.step()
        optimizer.zero_grad()
        # `self.log` would repeat the last cosine in steps that have none.
        self.logger.log_metrics(curves(step), self.global_step - 1)

    def validation_step(self, batch):
        outputs = self.model(batch["inputs"])
        for name, measure in self.measures.items():
            measure.update(outputs[name], batch[name])

    def on_validation_epoch_end(self):
        found = {name: measure.compute() for name, measure in self.measures.items()}
        self.log_dict({f"validation/{name}": value for name, value in found.items()}, prog_bar=True)
        self.log("score", sum(found.values()) / len(found))
        for measure in self.measures.values():
            measure.reset()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


def train(problem, folder, epochs, resume=False):
    """Train up to `epochs`, those before a resume included; returns the module."""
    torch.manual_seed(0)
    module = MultiTask(problem)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        use_distributed_sampler=False,  # ours is one already
        log_every_n_steps=1,
        logger=TensorBoardLogger(folder, name=None, version=""),
        callbacks=ModelCheckpoint(
            folder,
            "best",
            monitor="score",
            mode="max",
            save_last=True,
            enable_version_counter=False,
        ),
    )
    loaders = batches(problem.train, shuffle=True), batches(problem.validation, 1024)
    trainer.fit(module, *loaders, ckpt_path=folder / "last.ckpt" if resume else None)
    return module


if __name__ == "__main__":
    torch.set_num_threads(1)
    options = arguments()
    problem = census(options.rows) if options.census else digits()
    train(problem, options.folder, options.epochs, options.resume)
