"""Route "lean": the exact Gramian without the Jacobian, then one combined backward.

Heads first. Then all tasks go through the shared part in step, segment by segment: the rows of a
segment are folded into the Gramian and dropped. The weights found, one more backward gives Jᵀ w.
One backward more than "rows", at nearly the memory of a plain step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.combine import combined_rows, weighted_sum
from gradwright.engine.basics.inner_products import add_products
from gradwright.engine.basics.pull import Cotangents, compact, pull, zeros_at
from gradwright.engine.errors import LossError
from gradwright.engine.plan.borders import is_without_hook
from gradwright.engine.plan.frontier import size_of
from gradwright.engine.plan.linearity import has_hooks, off_by
from gradwright.engine.plan.segments import Segment, segments_of
from gradwright.engine.plan.stages import Plan
from gradwright.engine.routes.heads_first import HeadCuts, head_cuts, run_heads
from gradwright.engine.routes.known import weighted_starts
from gradwright.engine.routes.layer_products import add_layer_products
from gradwright.engine.routes.rows import Rows


@dataclass(frozen=True, slots=True)
class LeanPlan:
    """How the graph is cut: a head per task, then segments that all tasks run in step."""

    plan: Plan
    heads: HeadCuts
    rest: list[GradientEdge]  # the leaves that are not of heads
    segments: list[Segment]
    sure: bool  # that no hook in the shared part bends the gradients

    @property
    def edges(self) -> set[GradientEdge]:
        """Where gradients are taken out, and put in again."""
        inner = {edge for one in self.segments for edge in one.exits}
        outputs = {layer.output for one in self.segments for layer in one.layers}
        return inner | outputs


def lean_plan(plan: Plan, meeting: Sequence[GradientEdge]) -> LeanPlan | None:
    """A plan for the route, or None where it would not be exact: see `borders`."""
    leaves = plan.leaves
    if any(leaves[edge]._backward_hooks for edge in meeting):
        return None
    heads = head_cuts(plan, meeting)
    if heads is None:
        return None
    starts = dict.fromkeys(edge for cut in heads.cuts for edge in cut)
    size = max(sum(size_of(edge) for edge in cut) for cut in heads.cuts)
    shared = [node for node in plan.reach if node not in heads.gone]
    segments = segments_of(shared, starts, size, frozenset(meeting))
    rest = [edge for edge in leaves if edge.node not in heads.gone]
    found = LeanPlan(plan, heads, rest, segments, sure=not has_hooks(shared))
    return found if all(is_without_hook(edge) for edge in found.edges) else None


class Lean:
    """The tasks' gradients, as far as the Gramian and a weighted sum need them."""

    def __init__(self, lean: LeanPlan, meeting: Sequence[GradientEdge]) -> None:
        self._plan = lean
        self._n = lean.plan.n_tasks
        self._meeting = frozenset(meeting)
        self.is_linear = True  # so far
        self.gramian = torch.zeros(self._n, self._n, dtype=torch.float64)
        left, self._others = run_heads(lean.plan, lean.heads, keep=False)
        self._starts = list(left.starts)
        under_way = list(self._starts)
        for segment in lean.segments:
            self._run(segment, under_way)

    def combine(self, weights: Tensor, heads: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        """The gradient of each leaf: Σ weight × row for shared ones, Σ head × row for others.

        Raises:
            LossError: the backward is not linear, by a hook of a node (which cannot be seen) or by
                a custom Function.
        """
        yield from self._combined(weights)
        yield from combined_rows(self._others, heads)

    def _run(self, segment: Segment, under_way: list[Cotangents]) -> None:
        """Bring every task through the segment; its rows go into the Gramian."""
        kept = [*segment.leaves, *(layer.output for layer in segment.layers)]
        rows: Rows = {edge: [None] * self._n for edge in kept}
        for task, cotangents in enumerate(under_way):
            gradients = pull(cotangents, [*segment.exits, *kept], keep=True)
            ends, gradients = gradients[: len(segment.exits)], gradients[len(segment.exits) :]
            if segment.exits:
                pairs = zip(segment.exits, ends, strict=True)
                under_way[task] = {edge: compact(end) for edge, end in pairs if end is not None}
            for edge, gradient in zip(kept, gradients, strict=True):
                rows[edge][task] = None if gradient is None else compact(gradient)
        for edge in segment.leaves:
            self._take(edge, rows.pop(edge))
        for layer in segment.layers:
            add_layer_products(self.gramian, layer, rows.pop(layer.output))

    def _take(self, edge: GradientEdge, rows: list[Tensor | None]) -> None:
        if edge in self._meeting:
            add_products(self.gramian, rows)
        else:
            for task, row in enumerate(rows):
                self._keep(edge, task, row)

    def _keep(self, edge: GradientEdge, task: int, gradient: Tensor | None) -> None:
        if gradient is not None:
            rows = self._others.setdefault(edge, [None] * self._n)
            rows[task] = compact(gradient)

    def _combined(self, weights: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        """Jᵀw at the shared leaves, by one backward; by one per task where it is not linear."""
        sure, edges = self._plan.sure, self._plan.rest
        starts = self._starts if not sure else _emptied(self._starts)
        found = pull(weighted_starts(starts, weights), edges, keep=not sure)
        together = self._of_shared(found)
        off = off_by([gradient for _, gradient in together], weights, self.gramian)
        self.is_linear = not off > max(10 * self._plan.plan.eps**0.5, 1e-6)  # NaN: not this fault
        if sure and not self.is_linear:
            raise LossError(_NOT_LINEAR)
        if self.is_linear and not sure:
            pull(zeros_at(self._starts), edges, keep=False)  # frees the graph
        yield from together if self.is_linear else self._one_by_one(weights)

    def _one_by_one(self, weights: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        total: dict[GradientEdge, Tensor] = {}
        for task, weight in enumerate(weights.tolist()):
            keep = task < self._n - 1
            found = pull(self._starts[task], self._plan.rest, keep=keep)
            for edge, gradient in self._of_shared(found):
                both = weighted_sum([total.get(edge), gradient], [1.0, weight])
                assert both is not None
                total[edge] = both
        yield from total.items()

    def _of_shared(self, found: Sequence[Tensor | None]) -> list[tuple[GradientEdge, Tensor]]:
        pairs = zip(self._plan.rest, found, strict=True)
        return [(edge, g) for edge, g in pairs if g is not None and edge in self._meeting]


_NOT_LINEAR = (
    "the backward of the shared part is not linear: a custom Function or a hook of a graph node "
    "clips or normalises gradients. No `.grad` was changed; give route='rows', which is exact here."
)


def _emptied(starts: list[Cotangents]) -> Iterator[Cotangents]:
    """Each of them, which is gone when the next one is asked for."""
    for start in starts:
        yield dict(start)
        start.clear()
