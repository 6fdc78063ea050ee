"""The loops that `accumulation_cost` compares: by hand, by hand and exact, and with windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks._accumulation_models import MODELS, Batch, collate, gpt2
from gradwright.loops import windows

SIZE = 4
_MICRO_BATCHES = 9  # two full windows and a last one of 1
_ROWS = 4

Loop = Callable[[], None]
"""An epoch."""


@dataclass(frozen=True, slots=True)
class Work:
    """A model, its micro-batches, and the loss that is summed over what is counted."""

    model: nn.Module
    micro_batches: Sequence[Batch]
    loss_sum: Callable[[nn.Module, Batch], tuple[Tensor, int]]

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def ends_window(self, number: int) -> bool:
        """Whether micro-batch `number`, counted from 0, is the last one of its window."""
        return (number + 1) % SIZE == 0 or number + 1 == len(self.micro_batches)


def by_hand(work: Work) -> Loop:
    """The loop that is found everywhere: the mean of each micro-batch, divided by the size."""
    optimizer = work.optimizer()

    def epoch() -> None:
        for number, batch in enumerate(work.micro_batches):
            loss, count = work.loss_sum(work.model, batch)
            (loss / count / SIZE).backward()
            if work.ends_window(number):
                optimizer.step()
                optimizer.zero_grad()

    return epoch


def exact_by_hand(work: Work) -> Loop:
    """Sums, then one division of the gradients."""
    optimizer = work.optimizer()

    def epoch() -> None:
        total = 0
        for number, batch in enumerate(work.micro_batches):
            loss, count = work.loss_sum(work.model, batch)
            loss.backward()
            total += count
            if work.ends_window(number):
                for parameter in work.model.parameters():
                    if parameter.grad is not None:
                        parameter.grad /= total
                optimizer.step()
                optimizer.zero_grad()
                total = 0

    return epoch


def ours(work: Work) -> Loop:
    """`gradwright.windows`."""
    optimizer = work.optimizer()

    def epoch() -> None:
        for window in windows(work.micro_batches, size=SIZE, model=work.model):
            for batch in window:
                loss, count = work.loss_sum(work.model, batch)
                window.backward(loss, count=count)
            window.close()
            optimizer.step()
            optimizer.zero_grad()

    return epoch


def _rows(width: int) -> Work:
    """A perceptron of three layers on 32 rows."""
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
    )

    def loss_sum(model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        return F.cross_entropy(model(batch["x"]), batch["y"], reduction="sum"), len(batch["y"])

    micro_batches = [
        {"x": torch.randn(32, width), "y": torch.randint(8, (32,))} for _ in range(_MICRO_BATCHES)
    ]
    return Work(model, micro_batches, loss_sum)


def _language(model: nn.Module, length: int) -> Work:
    """Four padded sequences to a micro-batch, of up to `length` tokens."""
    kind = MODELS["GPT-2"]
    counts = torch.randint(length // 2, length, (_MICRO_BATCHES * _ROWS,)).tolist()
    examples = kind.examples(counts)
    micro_batches = [
        collate(examples[start : start + _ROWS]) for start in range(0, len(examples), _ROWS)
    ]
    return Work(model, micro_batches, kind.loss_sum)


LOOPS = {"by hand": by_hand, "exact by hand": exact_by_hand, "gradwright": ours}
WORKS: dict[str, Callable[[], Work]] = {
    "perceptron": lambda: _rows(64),
    "tiny GPT-2": lambda: _language(gpt2(), 16),
    "GPT-2": lambda: _language(gpt2(width=256, layers=3, heads=4), 64),
}
