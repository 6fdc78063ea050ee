"""Route "rows": one backward per task, its gradients kept as autograd made them.

Fastest of the exact routes. Heads run before the shared part of their task, and are freed at once.
"""

from collections.abc import Iterator, Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.combine import weighted_sum
from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.pull import Cotangents, add_to, compact, pull, zeros_at
from gradwright.engine.plan.borders import can_cut
from gradwright.engine.plan.stages import Leg, Plan

Rows = dict[GradientEdge, list[Tensor | None]]
"""For each leaf the gradient of each task there, [leaf][task]; None where a task reaches it not."""


class KeptRows:
    """The tasks' gradients at every leaf."""

    def __init__(self, plan: Plan, meeting: Sequence[GradientEdge], rows: Rows) -> None:
        self.others = dict(rows)
        self.shared = {edge: self.others.pop(edge) for edge in meeting}
        self._n = plan.n_tasks

    @property
    def gramian(self) -> Tensor:
        """The inner products of the tasks' gradients at the shared leaves: [task, task]."""
        return gramian_of(self.shared.values(), self._n)

    def combine(self, weights: Tensor, heads: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        """The gradient of each leaf: Σ weight × row for shared ones, Σ head × row for others."""
        for rows, factors in ((self.shared, weights.tolist()), (self.others, heads.tolist())):
            for edge in list(rows):
                gradient = weighted_sum(rows.pop(edge), factors)
                if gradient is not None:
                    yield edge, gradient


def rows_of(plan: Plan, *, keep: bool) -> Rows:
    """The gradient of every loss at every leaf; frees the graph unless `keep`."""
    rows: Rows = {edge: [None] * plan.n_tasks for edge in plan.leaves}
    whole = keep or not can_cut(plan)
    for task in range(plan.n_tasks):
        legs = [plan.whole(task)] if whole else plan.legs_of(task)
        for edge, gradient in run_legs(plan, legs, dict(plan.starts[task])):
            rows[edge][task] = compact(gradient)
    if whole and not keep:
        _free(plan)
    return rows


def run_legs(
    plan: Plan, legs: Sequence[Leg], waiting: Cotangents
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """The gradients at the legs' leaves; `waiting` goes from their start to their end."""
    for leg in legs:
        here = [edge for edge in waiting if plan.reach[edge.node] in leg.stages]
        cotangents = {edge: waiting.pop(edge) for edge in here}
        gradients = pull(cotangents, leg.exits + leg.leaves, keep=leg.keep)
        cotangents.clear()
        border = len(leg.exits)
        for edge, gradient in zip(leg.exits, gradients[:border], strict=True):
            if gradient is not None:
                add_to(waiting, edge, gradient)
        for edge, gradient in zip(leg.leaves, gradients[border:], strict=True):
            if gradient is not None:
                yield edge, gradient


def _free(plan: Plan) -> None:
    """Release what the whole graph saved, by one backward whose result is dropped."""
    pull(zeros_at(plan.starts), list(plan.leaves), keep=False)
