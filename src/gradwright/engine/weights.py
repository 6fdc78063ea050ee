"""Asking a weighting for its weights, and checking what it says."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, get_args

import torch
from torch import Tensor

from gradwright.engine.errors import LossError, TaskMismatch
from gradwright.engine.losses import TaskLosses
from gradwright.engine.weighting import (
    GramianLossWeighting,
    GramianWeighting,
    HeadRule,
    JacobianWeighting,
    LossWeighting,
    Weighting,
)

_Preset = Literal["paper", "libmtl", "torchjd"]
Heads = HeadRule | _Preset
"""A rule for the heads, or whose rule to follow."""


_READY = (LossWeighting, GramianWeighting, GramianLossWeighting, JacobianWeighting)


def check_kind(weighting: Weighting) -> None:
    """Refuse a method that needs more than the losses of one batch.

    Raises:
        ValueError: it reads several batches, or owns the whole training step.
    """
    if not isinstance(weighting, _READY):
        raise ValueError(
            f"`weighting` is {type(weighting).__name__}, which reads more than the losses of one "
            "batch: `backward` cannot run it. Methods of a whole step have a `backward` of their "
            "own; for two batches, call the method with the product of their Jacobians."
        )


def check_tasks(weighting: Weighting, read: TaskLosses) -> None:
    """Refuse a weighting that was made for another number of tasks.

    Raises:
        TaskMismatch: with both numbers and the tasks' names.
    """
    expected = weighting.n_tasks
    if expected is not None and expected != len(read.names):
        raise TaskMismatch(
            f"`weighting` is {type(weighting).__name__} for {expected} tasks, but there are "
            f"{len(read.names)} losses: {', '.join(map(repr, read.names))}. Give one loss per "
            "task, None for a task that is absent from this batch."
        )


def check_heads(heads: Heads, weighting: Weighting | None) -> None:
    """Refuse an unknown rule, and one that a method which weights whole losses cannot follow."""
    if heads not in (*get_args(HeadRule), *get_args(_Preset)):
        raise ValueError(
            f"`heads` is {heads!r}: it must be 'weighted', 'unweighted' or 'mean', or the preset "
            "'paper', 'libmtl' or 'torchjd'."
        )
    if isinstance(weighting, JacobianWeighting) and heads == "weighted":
        raise ValueError(
            f"`heads` is 'weighted', but {type(weighting).__name__} gives no weights: "
            "'unweighted' or 'mean'."
        )
    if isinstance(weighting, LossWeighting) and _rule(heads, weighting) != "weighted":
        raise ValueError(
            f"`heads` is {heads!r}, but {type(weighting).__name__} weights whole losses, their "
            "heads included: leave `heads` out."
        )


def ask(weighting: Weighting, read: TaskLosses, *facts: Tensor) -> Tensor:
    """The weights of the present tasks [task], in float64, from what the weighting reads."""
    with torch.no_grad(), present_only(weighting, read):
        weights: Tensor = weighting(*facts)
    _check(weighting, weights, read)
    return weights.detach().to("cpu", torch.float64)


def present_only(weighting: Weighting, read: TaskLosses) -> AbstractContextManager[None]:
    """Within the block the weighting speaks of the tasks of this batch."""
    return nullcontext() if read.all_present else weighting.only(torch.tensor(read.present))


def head_factors(heads: Heads, weighting: Weighting, weights: Tensor | None, n: int) -> Tensor:
    """What each task's head is multiplied by: [task]."""
    match _rule(heads, weighting):
        case "weighted" if weights is not None:
            return weights
        case "mean":
            return torch.full((n,), 1 / n, dtype=torch.float64)
        case _:
            return torch.ones(n, dtype=torch.float64)


def _rule(heads: Heads, weighting: Weighting) -> HeadRule:
    match heads:
        case "paper":
            return weighting.paper_heads
        case "libmtl":
            return weighting.libmtl_heads
        case "torchjd":
            return weighting.torchjd_heads
        case _:
            return heads


def _check(weighting: Weighting, weights: Tensor, read: TaskLosses) -> None:
    name, tasks = type(weighting).__name__, len(read.present)
    if weights.shape != (tasks,):
        raise TaskMismatch(
            f"{name} returned weights of shape {list(weights.shape)} for {tasks} losses: "
            f"it must be [{tasks}]."
        )
    if not bool(weights.isfinite().all()):
        raise LossError(f"{name} returned weights {weights.tolist()}: they must be finite.")
