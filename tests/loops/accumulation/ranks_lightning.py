"""What two processes run in Lightning."""

from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

from gradwright.loops import Window
from tests.loops.accumulation.ranks import EVEN, SIZE, Facts, Reductions, of_rank, of_window
from tests.loops.accumulation.small import (
    Batch,
    difference,
    gradients,
    mean_gradients,
    model,
    summed,
)


def lightning() -> Facts:
    """Manual optimization in Lightning's DDP, without and with deferral."""
    facts = Facts(differences=[], reductions={})
    for is_deferred in (False, True):
        module = _module(facts, is_deferred=is_deferred)
        _fit(module)
        facts["reductions"][str(is_deferred)] = module.reductions.count
    return facts


def _module(facts: Facts, *, is_deferred: bool) -> Any:
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False
            self.net = model(torch.float32)
            self.window = Window(self)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.net.parameters(), lr=0.0)

        def on_train_start(self) -> None:
            self.reductions = Reductions(self.trainer.model)

        def training_step(self, batch: Batch, number: int) -> None:
            is_last = len(self.window) == SIZE - 1 or self.trainer.is_last_batch
            with self.window.deferred() if is_deferred and not is_last else nullcontext():
                loss = summed(self.net, batch)
                self.window.backward(loss, len(batch[1]), backward=self.manual_backward)
            if is_last:
                self.window.close()
                expected = mean_gradients(model(torch.float32), of_window(EVEN, number // SIZE))
                facts["differences"].append(difference(gradients(self.net), expected))
                optimizer: Any = self.optimizers()
                optimizer.step()
                optimizer.zero_grad()

    return Module()


def _fit(module: Any) -> None:
    import lightning.pytorch as pl

    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer.fit(module, DataLoader(of_rank(EVEN, dist.get_rank()), batch_size=None))  # type: ignore[arg-type]
