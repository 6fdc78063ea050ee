"""One epoch of accumulation by us and by four libraries, each in the loop that its users write.

Every one gets the same model, the examples in the same order as micro-batches of one, and `Updates`
for an optimizer. The peers get the loss that the model returns, a mean over the labelled tokens of
the micro-batch, as their documentation shows it.
"""

import tempfile
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from benchmarks._accumulation_exact import gradient_of
from benchmarks._accumulation_models import Example, LanguageModel, collate
from gradwright.loops import windows

Accumulate = Callable[[LanguageModel, nn.Module, Sequence[Example], int], list[Tensor]]
"""Model, examples, micro-batches per window → the update of each optimizer step, [parameter]."""


class Updates(torch.optim.SGD):
    """What SGD with learning rate 1 would subtract, kept and not subtracted.

    So all windows are taken at the same weights, and no update is rounded by them.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=1.0)
        self._model = model
        self.kept: list[Tensor] = []

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Keeps a copy of the gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.kept.append(gradient_of(self._model))
        return loss


def loader_of(examples: Sequence[Example]) -> DataLoader:
    """Micro-batches of one example, in order."""
    return DataLoader(examples, batch_size=1, collate_fn=collate)  # type: ignore[arg-type]


def ours(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
) -> list[Tensor]:
    """`gradwright.windows`, given sums."""
    optimizer = Updates(model)
    for window in windows(loader_of(examples), size=size, model=model):
        for batch in window:
            loss, count = kind.loss_sum(model, batch)
            window.backward(loss, count=count)
        window.close()
        optimizer.step()
        optimizer.zero_grad()
    return optimizer.kept


def lightning(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
) -> list[Tensor]:
    """Lightning's Trainer, automatic optimization, `accumulate_grad_batches`."""
    from lightning import LightningModule, Trainer

    optimizer = Updates(model)

    class Training(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: dict[str, Tensor]) -> Tensor:
            return self.model(**batch).loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return optimizer

    trainer = Trainer(
        accelerator="cpu",
        accumulate_grad_batches=size,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    trainer.fit(Training(), loader_of(examples))
    return optimizer.kept


def accelerate(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
) -> list[Tensor]:
    """Accelerate's `accumulate`."""
    from accelerate import Accelerator  # type: ignore[import-untyped]

    updates = Updates(model)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=size)
    model, optimizer, loader = accelerator.prepare(model, updates, loader_of(examples))
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
    return updates.kept


def ignite(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
) -> list[Tensor]:
    """Ignite's supervised trainer, `gradient_accumulation_steps`."""
    from ignite.engine import create_supervised_trainer

    optimizer = Updates(model)
    trainer = create_supervised_trainer(
        model,
        optimizer,
        loss_fn=lambda output, _: output.loss,
        prepare_batch=lambda batch, device, non_blocking: (batch, batch["labels"]),
        model_fn=lambda model, batch: model(**batch),
        gradient_accumulation_steps=size,
    )
    trainer.run(loader_of(examples), max_epochs=1)
    return optimizer.kept


def transformers(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], size: int
) -> list[Tensor]:
    """Transformers' Trainer, `gradient_accumulation_steps`, without clipping."""
    from transformers import PrinterCallback, Trainer, TrainingArguments

    optimizer = Updates(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=1,
            gradient_accumulation_steps=size,
            num_train_epochs=1,
            max_grad_norm=0.0,
            train_sampling_strategy="sequential",
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            model,
            arguments,
            data_collator=collate,
            train_dataset=list(examples),
            optimizers=(optimizer, None),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return optimizer.kept


LIBRARIES: dict[str, Accumulate] = {
    "gradwright": ours,
    "Lightning": lightning,
    "Accelerate": accelerate,
    "Ignite": ignite,
    "Transformers": transformers,
}
