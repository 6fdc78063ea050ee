"""Methods that read several batches: the weights come from the product of two Jacobians, J₁ J₂ᵀ.

With two further batches they are for the losses of the first; with one, for the mean of both.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.basics.inner_products import cross_products
from gradwright.engine.basics.write import add_to_grad
from gradwright.engine.errors import LossError, SharedError, TaskMismatch
from gradwright.engine.losses import Losses, TaskLosses, read_losses
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.result import Backward, Route
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import KeptRows, rows_of
from gradwright.engine.step import Step
from gradwright.engine.steps.known import weighted_gradients
from gradwright.engine.weights.asking import ask, not_finite
from gradwright.engine.weights.bases import CrossGramianWeighting, Weighting
from gradwright.engine.weights.heads import head_batches

Gradients = list[tuple[Tensor, Tensor]]
"""Leaves, and what is to be added to their `.grad`."""


def check_other(other: Sequence[Losses], weighting: Weighting | None) -> None:
    """Refuse batches that nothing reads.

    Raises:
        ValueError: the weighting reads one batch.
    """
    if other and not isinstance(weighting, CrossGramianWeighting):
        name = "a plain sum" if weighting is None else weighting._get_name()
        raise ValueError(
            f"`other` has the losses of {len(other)} batches, but {name} reads one batch: leave "
            "`other` out."
        )


def read_other(
    read: TaskLosses, other: Sequence[Losses], weighting: Weighting, *, check_finite: bool
) -> list[TaskLosses]:
    """The losses of the further batches.

    Raises:
        ValueError: there are too few or too many.
        LossError: as for the first.
        TaskMismatch: one has other tasks.
    """
    if len(other) not in (1, 2):
        raise ValueError(
            f"`weighting` is {weighting._get_name()}, which reads two independent batches: "
            "`other` needs the losses of two more (the weights are then for `losses`), or of one "
            f"more (they are then for the mean of both). Got {len(other)}."
        )
    found = [read_losses(losses, check_finite=check_finite) for losses in other]
    for position, batch in enumerate(found):
        if (batch.names, batch.present) != (read.names, read.present):
            raise TaskMismatch(
                f"`other` has at position {position} losses of {_tasks(batch)}, but `losses` are "
                f"of {_tasks(read)}. Give each batch the same tasks, None for those absent from "
                "any of them."
            )
    return found


def backward_of_batches(
    step: Step, others: Sequence[Step], weighting: CrossGramianWeighting
) -> Backward:
    """The step of a method that reads two batches."""
    left, right = (_Batch(each, weighting) for each in [step, *others][-2:])
    weights = _weights(left, right)
    rule = head_batches(step.heads, weighting)
    if len(others) == 1:
        share = 1.0 if rule == "sum" else 0.5
        found = left.gradients(weights, 0.5, share) + right.gradients(weights, 0.5, share)
    else:
        share = {"trained": 0.0, "mean": 1 / 3, "sum": 1.0}[rule]
        found = left.gradients(weights, 0.0, share) + right.gradients(weights, 0.0, share)
        found += _trained(step, weighting, weights, share or 1.0)
    for leaf, gradient in found:
        add_to_grad(leaf, gradient)
    return step.result(weights, None, _route(weighting, len(others), len(step.read.present)))


class _Batch:
    """The tasks' gradients of one batch."""

    def __init__(self, step: Step, weighting: CrossGramianWeighting) -> None:
        self.step, self.weighting = step, weighting
        plan = step.plan()
        if has_reentrant(plan):
            rows, plan = reentrant_rows(plan, keep=step.keep)
            meeting = shared_leaves(plan, step.shared)
        else:
            meeting = shared_leaves(plan, step.shared)
            rows = rows_of(plan, keep=step.keep)
        self.rows = KeptRows(plan, meeting, rows)
        self._leaves = plan.leaves

    def gradients(self, weights: Tensor, share: float, heads_share: float) -> Gradients:
        """This batch's part of each leaf's gradient: shared leaves and heads have their shares."""
        if not share:
            self.rows.shared.clear()
        if not heads_share:
            self.rows.others.clear()
        factors = heads_share * self.step.factors(self.weighting, weights)
        found = self.rows.combine(share * weights, factors)
        return [(self._leaves[edge], gradient) for edge, gradient in found]


def _trained(
    step: Step, weighting: CrossGramianWeighting, weights: Tensor, heads_share: float
) -> Gradients:
    """The gradients of a batch that was not read for the weights."""
    found = weighted_gradients(step, weights, heads_share * step.factors(weighting, weights))
    leaves = found.plan.leaves
    return [(leaves[edge], gradient) for edge, gradient in found.gradients.items()]


def _weights(left: _Batch, right: _Batch) -> Tensor:
    if not left.rows.shared.keys() & right.rows.shared.keys():
        raise SharedError(
            "the losses of two batches share no parameter: run the same model on each of them."
        )
    read, scale = left.step.read, left.step.scale
    cross = cross_products(left.rows.shared, right.rows.shared, len(read.present))
    bad = ~cross.isfinite()
    if not bad.any():
        return ask(left.weighting, read, cross / scale**2)
    if scale != 1:  # the gradients are infinite too, so the scaler will leave this step out
        return torch.ones(len(cross), dtype=torch.float64)
    found = bad.all(dim=0) | bad.all(dim=1)
    raise LossError(not_finite(read, found if found.any() else bad.any(dim=1)))


def _route(weighting: CrossGramianWeighting, n_others: int, n_tasks: int) -> Route:
    name = weighting._get_name()
    trained = "the weights are for both" if n_others == 1 else "then one backward of the first"
    return Route("batches", f"{name} reads {n_tasks} rows of two batches; {trained}")


def _tasks(read: TaskLosses) -> str:
    names = ", ".join(repr(read.names[position]) for position in read.present)
    absent = len(read.names) - len(read.present)
    return f"{names} ({absent} absent)" if absent else names
