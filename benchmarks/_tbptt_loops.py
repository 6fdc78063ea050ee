"""The recurrent models of `tbptt`, and the loops over time that it compares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradwright.loops import tbptt

State = tuple[Tensor, Tensor] | None
Pair = tuple[Tensor, Tensor]
"""Inputs and targets, [row, time, feature]."""


class Recurrent(nn.Module):
    """An LSTM and a linear map of its outputs back to the size of the inputs."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(size, hidden, batch_first=True)
        self.head = nn.Linear(hidden, size)

    def forward(self, segment: Pair, state: State) -> tuple[Tensor, State]:
        """The mean squared error over a segment, and the state after it."""
        inputs, targets = segment
        outputs, state = self.recurrent(inputs, state)
        return F.mse_loss(self.head(outputs), targets), state


class CellByCell(Recurrent):
    """The same from an `LSTMCell`, one time after the other in Python."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__(size, hidden)
        self.recurrent = nn.LSTMCell(size, hidden)  # type: ignore[assignment]

    def forward(self, segment: Pair, state: State) -> tuple[Tensor, State]:
        inputs, targets = segment
        outputs = []
        for at_time in inputs.unbind(1):
            state = self.recurrent(at_time, state)
            outputs.append(state[0])
        return F.mse_loss(self.head(torch.stack(outputs, 1)), targets), state


@dataclass(frozen=True)
class Work:
    """A model and the sequence that it is trained on."""

    model: Recurrent
    batch: Pair

    @property
    def length(self) -> int:
        return self.batch[0].shape[1]

    def gradient(self) -> Tensor:
        """Of all parameters, flat: [parameter]."""
        return torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None])


Make = Callable[[], Work]
"""A new model and its sequence, with the same values at every call."""


def make(
    kind: type[Recurrent], size: int, hidden: int, rows: int, length: int, dtype: torch.dtype
) -> Make:
    """How to make a model of this kind and a sequence of so many times."""

    def made() -> Work:
        torch.manual_seed(0)
        model = kind(size, hidden).to(dtype)
        generator = torch.Generator().manual_seed(1)
        inputs, targets = torch.randn(2, rows, length, size, generator=generator, dtype=dtype)
        return Work(model, (inputs, targets))

    return made


Loop = Callable[[Work, int], None]
"""Leaves in `.grad` the gradient of the mean over all times; the length of a segment is given."""


def full(work: Work, length: int) -> None:
    """One graph over the whole sequence."""
    work.model.zero_grad()
    work.model(work.batch, None)[0].backward()


def by_hand(work: Work, length: int) -> None:
    """Truncated, each segment with its share of the times."""
    _by_hand(work, length, lambda times, segments: times / work.length)


def mean_of_means(work: Work, length: int) -> None:
    """Truncated, each segment counting the same however short it is."""
    _by_hand(work, length, lambda times, segments: 1 / segments)


def truncated(work: Work, length: int) -> None:
    work.model.zero_grad()
    for segment in tbptt(work.model, length, step="window")(work.batch):
        segment.loss.backward()


def exact(work: Work, length: int) -> None:
    work.model.zero_grad()
    for segment in tbptt(work.model, length, exact=True)(work.batch):
        segment.loss.backward()


LOOPS: Mapping[str, Loop] = {
    "full BPTT": full,
    "by hand": by_hand,
    "mean of means": mean_of_means,
    "truncated": truncated,
    "exact": exact,
}


def _by_hand(work: Work, length: int, share: Callable[[int, int], float]) -> None:
    work.model.zero_grad()
    parts = list(zip(*(part.split(length, 1) for part in work.batch), strict=True))
    state: State = None
    for inputs, targets in parts:
        loss, state = work.model((inputs, targets), state)
        (loss * share(inputs.shape[1], len(parts))).backward()
        assert state is not None
        state = state[0].detach(), state[1].detach()
