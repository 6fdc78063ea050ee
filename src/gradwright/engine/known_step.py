"""Route "known": the method has its weights from earlier steps, so one backward is enough."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.combine import combined_rows
from gradwright.engine.heads import head_rule
from gradwright.engine.heads_first import head_cuts, run_heads
from gradwright.engine.inner_products import squared_length
from gradwright.engine.known import gradients_of_known
from gradwright.engine.measured import error_of, exact_weights
from gradwright.engine.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.result import ApproximationError, Backward, Route
from gradwright.engine.rows import KeptRows, Rows
from gradwright.engine.shared import shared_leaves
from gradwright.engine.stages import Plan
from gradwright.engine.step import Step
from gradwright.engine.weighting import Weighting
from gradwright.engine.write import add_all


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
    if weighting.max_norm is not None:
        with_heads = head_rule(step.heads, weighting) == "weighted"
        longest = weighting.max_norm * step.scale
        weights = weights * _shorten(found, longest, with_heads=with_heads)
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
    why = f"{type(weighting).__name__} has kept its weights of an earlier step: {passes}"
    return Route("known", why, exact=False, error=error)


def _shorten(found: WeightedGradients, longest: float, *, with_heads: bool) -> float:
    """Make the gradient of what is shared at most `longest`; by which factor."""
    common = [edge for edge in found.meeting if edge in found.gradients]
    length = math.sqrt(squared_length(found.gradients[edge] for edge in common))
    if length <= longest:
        return 1.0
    for edge in found.gradients if with_heads else common:
        found.gradients[edge] = found.gradients[edge] * (longest / length)
    return longest / length
