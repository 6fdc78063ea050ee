"""The losses of one step: reading what the user gave, and refusing what cannot work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.pull import edge_of
from gradwright.engine.errors import LossError

Losses = Mapping[str, Tensor | None] | Sequence[Tensor | None] | Tensor
"""One scalar per task, by name or in order; None for a task that is absent from this batch."""


@dataclass(frozen=True, slots=True)
class TaskLosses:
    """The losses of one step, checked."""

    names: tuple[str, ...]  # of all tasks
    present: tuple[int, ...]  # positions of those that have a loss in this step
    tensors: tuple[Tensor, ...]  # [present task], each a scalar with a graph
    values: Tensor  # [present task], without a graph

    @property
    def all_present(self) -> bool:
        """Whether no task is absent."""
        return len(self.present) == len(self.names)

    def spread(self, values: Tensor, absent: float) -> Tensor:
        """From present tasks to all: [present task, ...] → [task, ...], for each dimension."""
        for dim in range(0 if self.all_present else values.dim()):
            shape = [*values.shape]
            shape[dim] = len(self.names)
            wider = values.new_full(shape, absent)
            values = wider.index_copy(dim, torch.tensor(self.present, device=wider.device), values)
        return values


def read_losses(losses: Losses, *, check_finite: bool = True) -> TaskLosses:
    """Names, tensors and values of `losses`.

    Raises:
        LossError: there is none, or one is not a scalar, has no graph, is not finite or repeated.
    """
    named = _named(losses)
    pairs = [(name, loss) for name, loss in named if loss is not None]
    if not pairs:
        raise LossError(
            "`losses` needs at least one loss: got "
            + ("none." if not named else f"None for all of its {len(named)} tasks.")
        )
    for name, loss in pairs:
        _check(name, loss)
    _check_distinct(pairs)
    values = torch.stack([loss.detach().reshape(()).to(pairs[0][1].device) for _, loss in pairs])
    if check_finite:
        _check_finite([name for name, _ in pairs], values)
    present = tuple(index for index, (_, loss) in enumerate(named) if loss is not None)
    names = tuple(name for name, _ in named)
    return TaskLosses(names, present, tuple(loss for _, loss in pairs), values)


def _named(losses: Losses) -> list[tuple[str, Tensor | None]]:
    if isinstance(losses, Tensor):
        if losses.dim() != 1:
            raise LossError(
                f"`losses` is a tensor of shape {list(losses.shape)}: "
                "give one scalar per task, or one tensor of shape [task]."
            )
        with torch.enable_grad():
            return [(str(index), loss) for index, loss in enumerate(losses.unbind())]
    if isinstance(losses, Mapping):
        return [(str(name), loss) for name, loss in losses.items()]
    return [(str(index), loss) for index, loss in enumerate(losses)]


def _check(name: str, loss: Tensor) -> None:
    if not isinstance(loss, Tensor):
        raise LossError(
            f"loss {name!r} is a {type(loss).__name__}: it must be a tensor. "
            "`.item()` and `float()` drop the graph; None says that the task is absent."
        )
    if loss.numel() != 1:
        raise LossError(
            f"loss {name!r} has shape {list(loss.shape)}: it must be a scalar. "
            "Take its mean or its sum."
        )
    if loss.is_complex():
        raise LossError(
            f"loss {name!r} is complex: it must be real. Take its real part or `abs()`."
        )
    if not loss.requires_grad:
        raise LossError(
            f"loss {name!r} has no graph: no parameter reaches it. If the task has no labels in "
            "this batch, give None; otherwise `gradwright doctor` says where the graph was cut."
        )


def _check_distinct(pairs: list[tuple[str, Tensor]]) -> None:
    seen: dict[GradientEdge, str] = {}
    for name, loss in pairs:
        other = seen.setdefault(edge_of(loss), name)
        if other != name:
            raise LossError(
                f"losses {other!r} and {name!r} are the same tensor: its gradient would count "
                "twice. Leave one out, or give it a weight."
            )


def _check_finite(names: list[str], values: Tensor) -> None:
    bad = [
        f"{name!r} is {value}"
        for name, value, fine in zip(
            names, values.tolist(), values.isfinite().tolist(), strict=True
        )
        if not fine
    ]
    if bad:
        raise LossError(
            f"loss {', '.join(bad)}: a loss must be finite. A mean over no labels is NaN; give "
            "None for a task that is absent from this batch."
        )
