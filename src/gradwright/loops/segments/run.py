"""Calls the user's `run` for one segment, and reads what it returns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from gradwright.engine import Losses
from gradwright.engine.losses import read_losses
from gradwright.loops.errors import SegmentError
from gradwright.loops.nested import map_tensors

Data = TypeVar("Data")
State = TypeVar("State")

Run = Callable[[Data, Any], tuple[Any, ...]]
"""From a segment and the state before it (None at first) to `(loss, state)`, the loss over the
segment and the state after it; or `(loss, state, output)`, where the output is for the loop."""


@dataclass(frozen=True, slots=True)
class Ran(Generic[State]):
    """What `run` returned for one segment."""

    names: tuple[str, ...] | None  # of several losses
    losses: tuple[Tensor | None, ...]  # None: a task that this segment has not
    state: State
    output: object

    def weighted(self, factor: float) -> Losses:
        """The losses times `factor`, as `run` gave them: by name, or in order."""
        scaled = [loss if factor == 1 or loss is None else loss * factor for loss in self.losses]
        return scaled if self.names is None else dict(zip(self.names, scaled, strict=True))

    @property
    def present(self) -> list[Tensor]:
        """The losses that are there."""
        return [loss for loss in self.losses if loss is not None]

    @property
    def value(self) -> Tensor:
        """The sum of the losses, without a graph."""
        return total([loss.detach() for loss in self.present])


def call(run: Run[Data], data: Data, state: Any, index: int) -> Ran[Any]:
    """Run segment `index`, on a state of its own: what `run` puts into a cache stays with it.

    Raises:
        SegmentError: `run` returned something else than a loss and a state, or a loss that no
            gradient can come from; losses without a graph pass while recording is off.
    """
    returned = run(data, map_tensors(state, lambda _, tensor: tensor, "state"))
    if not isinstance(returned, tuple) or len(returned) not in (2, 3):
        raise SegmentError(
            "`run` must return (loss, state) or (loss, state, output): got "
            f"{_described(returned)} for segment {index}."
        )
    loss, state, *output = returned
    names, losses = _read(loss, index)
    return Ran(names, losses, state, output[0] if output else None)


def total(losses: Sequence[Tensor]) -> Tensor:
    """Their sum, as one scalar; of one loss, that loss itself."""
    first, *others = losses
    result = first.reshape(()) if first.dim() else first
    for other in others:
        result = result + other.reshape(()).to(first.device)
    return result


def _read(loss: object, index: int) -> tuple[tuple[str, ...] | None, tuple[Tensor | None, ...]]:
    if isinstance(loss, Mapping):
        _check_several(loss)
        return tuple(loss), tuple(loss.values())
    if isinstance(loss, list | tuple):
        _check_several(loss)
        return None, tuple(loss)
    if not isinstance(loss, Tensor):
        raise SegmentError(
            f"`run` returned {_described(loss)} as the loss of segment {index}: it must be a "
            "scalar tensor, or several of them by name."
        )
    if loss.numel() != 1:
        raise SegmentError(
            f"the loss of segment {index} has shape {list(loss.shape)}: it must be a scalar. "
            "Take its mean or its sum."
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise SegmentError(
            f"the loss of segment {index} has no graph: no parameter reaches it. "
            "`gradwright doctor` says where it was cut."
        )
    return None, (loss,)


def _check_several(losses: Any) -> None:
    if torch.is_grad_enabled():
        read_losses(losses, check_finite=False)


def _described(value: object) -> str:
    kind = type(value).__name__
    return f"a {kind} of {len(value)}" if isinstance(value, tuple) else f"a {kind}"
