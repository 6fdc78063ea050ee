"""Asking a weighting for its weights, and checking what it says."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from gradwright.engine.errors import LossError, TaskMismatch
from gradwright.engine.losses import TaskLosses
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    JacobianWeighting,
    LossWeighting,
    Weighting,
)

_READY = (
    LossWeighting,
    GramianWeighting,
    GramianLossWeighting,
    GroupWeighting,
    CrossGramianWeighting,
    JacobianWeighting,
)


def check_kind(weighting: Weighting) -> None:
    """Refuse a method that needs more than losses and their gradients.

    Raises:
        ValueError: it owns the whole training step.
    """
    if not isinstance(weighting, _READY):
        raise ValueError(
            f"`weighting` is {type(weighting).__name__}, which reads more than losses and their "
            "gradients: `backward` cannot run it. Methods of a whole step have a `backward` of "
            "their own."
        )


def check_tasks(weighting: Weighting, read: TaskLosses) -> None:
    """Refuse a weighting that was made for another number of tasks.

    Raises:
        TaskMismatch: with both numbers and the tasks' names.
    """
    expected = weighting.n_tasks
    if expected is not None and expected != len(read.names):
        raise TaskMismatch(
            f"`weighting` is {weighting._get_name()} for {expected} tasks, but there are "
            f"{len(read.names)} losses: {', '.join(map(repr, read.names))}. Give one loss per "
            "task, None for a task that is absent from this batch."
        )


def weights_of(weighting: Weighting, gramian: Tensor, read: TaskLosses, *, scaled: bool) -> Tensor:
    """The weights of the present tasks [task] for their Gramian [task, task].

    Raises:
        LossError: a gradient is not finite; not where the losses were scaled.
    """
    bad = ~gramian.diagonal().isfinite()
    if bad.any():
        if scaled:  # the gradients are infinite too, so the scaler will leave this step out
            return torch.ones(len(gramian), dtype=torch.float64)
        raise LossError(not_finite(read, bad))
    if isinstance(weighting, GramianLossWeighting):
        return ask(weighting, read, gramian, read.values.to(gramian))
    return ask(weighting, read, gramian)


def ask(weighting: Weighting, read: TaskLosses, *facts: Tensor) -> Tensor:
    """The weights of the present tasks [task], in float64, from what the weighting reads."""
    with torch.no_grad(), present_only(weighting, read):
        weights = check_weights(weighting, weighting(*facts), read)
    assert weights is not None
    return weights


def ask_groups(weighting: GroupWeighting, read: TaskLosses, gramians: Tensor) -> Tensor:
    """The weights of the present tasks [group, task], in float64."""
    with torch.no_grad(), present_only(weighting, read):
        found: Tensor = weighting(gramians, read.values.to(gramians))
    checked = [check_weights(weighting, weights, read) for weights in found]
    return torch.stack([weights for weights in checked if weights is not None])


def ask_known(weighting: Weighting, read: TaskLosses) -> Tensor | None:
    """The weights of the present tasks [task], in float64, where no gradient is needed for them."""
    with torch.no_grad(), present_only(weighting, read):
        return check_weights(weighting, weighting.known_weights(read.values), read)


def present_only(weighting: Weighting, read: TaskLosses) -> AbstractContextManager[None]:
    """Within the block the weighting speaks of the tasks of this batch."""
    return nullcontext() if read.all_present else weighting.only(torch.tensor(read.present))


def not_finite(read: TaskLosses, bad: Tensor) -> str:
    """The error for gradients that are not finite, of the tasks where `bad` [task] holds."""
    names = [repr(read.names[read.present[task]]) for task in bad.nonzero().flatten().tolist()]
    return (
        f"the gradient of loss {', '.join(names)} is not finite, although the loss is: no "
        "`.grad` was changed. torch.autograd.detect_anomaly() names the operation."
    )


def check_weights(weighting: Weighting, weights: Tensor | None, read: TaskLosses) -> Tensor | None:
    """The weights of the present tasks [task], in float64, or None where there are none.

    Raises:
        TaskMismatch: there is not one per task.
        LossError: one is not finite.
    """
    if weights is None:
        return None
    name, tasks = weighting._get_name(), len(read.present)
    if weights.shape != (tasks,):
        raise TaskMismatch(
            f"{name} returned weights of shape {list(weights.shape)} for {tasks} losses: "
            f"it must be [{tasks}]."
        )
    if not bool(weights.isfinite().all()):
        raise LossError(f"{name} returned weights {weights.tolist()}: they must be finite.")
    return weights.detach().to("cpu", torch.float64)
