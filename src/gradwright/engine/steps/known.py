"""Route "known": the method has its weights from earlier steps, so one backward is enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.approximate.measured import error_of, exact_weights
from gradwright.engine.basics.combine import combined_rows
from gradwright.engine.basics.write import add_all
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.plan.stages import Plan
from gradwright.engine.result import ApproximationError, Backward, Route
from gradwright.engine.routes.clip import clip
from gradwright.engine.routes.heads_first import head_cuts, run_heads
from gradwright.engine.routes.known import gradients_of_known
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import KeptRows, Rows
from gradwright.engine.step import Step
from gradwright.engine.weights.bases import Weighting


@dataclass(frozen=True, slots=True)
class WeightedGradients:
    """The gradient of each leaf, and how it was computed."""

    plan: Plan
    meeting: list[GradientEdge]
    gradients: dict[GradientEdge, Tensor]
    passes: str


def backward_of_known(step: Step, weighting: Weighting, weights: Tensor) -> Backward:
    """The step of a method that knows its weights [task] without the tasks' gradients."""
    twin = weighting.to_measure()
    exact = None if twin is None else exact_weights(step, twin)
    found = weighted_gradients(step, weights, step.factors(weighting, weights))
    weights = weights * clip(step, weighting, found.meeting, found.gradients)
    add_all(found.plan.leaves, found.gradients.items())
    error = None if exact is None else error_of(None, weights, *exact)
    return step.result(weights, None, _route(weighting, found.passes, error))


def weighted_gradients(step: Step, weights: Tensor, heads: Tensor) -> WeightedGradients:
    """Σ weight × gradient for what is shared, Σ head × gradient for the rest."""
    plan = step.plan()
    if not has_reentrant(plan):
        meeting = shared_leaves(plan, step.shared)
        found = _one_backward(plan, meeting, weights, heads, keep=step.keep)
        return WeightedGradients(plan, meeting, dict(found), "one backward of their sum")
    rows, plan = reentrant_rows(plan, keep=step.keep)
    meeting = shared_leaves(plan, step.shared)
    gradients = dict(KeptRows(plan, meeting, rows).combine(weights, heads))
    return WeightedGradients(
        plan, meeting, gradients, "but reentrant checkpoints take one per task"
    )


def _one_backward(
    plan: Plan, meeting: Sequence[GradientEdge], weights: Tensor, heads: Tensor, *, keep: bool
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """Heads first, where that is exact and they have factors of their own."""
    cuts = None if torch.equal(weights, heads) else head_cuts(plan, meeting)
    rows: Rows = {}
    if cuts is not None:
        plan, rows = run_heads(plan, cuts, keep=keep)
    yield from gradients_of_known(plan, set(meeting), weights, heads, keep=keep)
    yield from combined_rows(rows, heads)


def _route(weighting: Weighting, passes: str, error: ApproximationError | None) -> Route:
    why = f"{weighting._get_name()} has kept its weights of an earlier step: {passes}"
    return Route("known", why, exact=False, error=error)
