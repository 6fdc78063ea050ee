"""Route "lean": the exact Gramian without the Jacobian, then one combined backward.

Heads first. Then all tasks go through the shared part in step, segment by segment: the rows of a
segment are folded into the Gramian and dropped. The weights found, one more backward gives Jᵀ w.
One backward more than "rows", at nearly the memory of a plain step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.borders import can_cut, is_without_hook, one_behind_another
from gradwright.engine.combine import weighted_sum
from gradwright.engine.early_cut import early_cuts
from gradwright.engine.errors import LossError
from gradwright.engine.inner_products import add_products
from gradwright.engine.layers import Layer
from gradwright.engine.order import size_of
from gradwright.engine.pull import Cotangents, add_to, compact, pull
from gradwright.engine.rows import Rows
from gradwright.engine.segments import Segment, segments_of
from gradwright.engine.stages import Plan

# Carries something from a module's output to its input, of one pass at a time.
_MODULE_HOOK = "BackwardHookFunctionBackward"


@dataclass(frozen=True, slots=True)
class LeanPlan:
    """How the graph is cut: a head per task, then segments that all tasks run in step."""

    plan: Plan
    cuts: list[list[GradientEdge]]  # [task], where its head's pass ends
    heads: list[list[GradientEdge]]  # [task], the leaves before that
    rest: list[GradientEdge]  # all other leaves
    segments: list[Segment]

    @property
    def edges(self) -> set[GradientEdge]:
        """Where gradients are taken out, and put in again."""
        inner = {edge for one in self.segments for edge in one.exits}
        outputs = {layer.output for one in self.segments for layer in one.layers}
        return inner | outputs | {edge for cut in self.cuts for edge in cut}


def lean_plan(plan: Plan, meeting: Sequence[GradientEdge]) -> LeanPlan | None:
    """A plan for the route, or None where it would not be exact: see `borders`."""
    leaves = plan.leaves
    if any(leaves[edge]._backward_hooks for edge in meeting) or not can_cut(plan):
        return None
    cuts = early_cuts(plan)
    ran = [_before(start, cut) for start, cut in zip(plan.starts, cuts, strict=True)]
    gone = set().union(*ran)
    if any(edge.node in gone for edge in meeting) or any(map(_crossing, cuts)):
        return None
    if any(node.name() == _MODULE_HOOK for node in plan.reach):
        return None
    starts = dict.fromkeys(edge for cut in cuts for edge in cut)
    size = max(sum(size_of(edge) for edge in cut) for cut in cuts)
    segments = segments_of([node for node in plan.reach if node not in gone], starts, size)
    heads = [[edge for edge in leaves if edge.node in nodes] for nodes in ran]
    rest = [edge for edge in leaves if edge.node not in gone]
    found = LeanPlan(plan, cuts, heads, rest, segments)
    return found if all(is_without_hook(edge) for edge in found.edges) else None


class Lean:
    """The tasks' gradients, as far as the Gramian and a weighted sum need them."""

    def __init__(self, lean: LeanPlan, meeting: Sequence[GradientEdge]) -> None:
        self._plan = lean
        self._n = lean.plan.n_tasks
        self._meeting = frozenset(meeting)
        self._others: Rows = {}
        self.gramian = torch.zeros(self._n, self._n, dtype=torch.float64)
        self._starts = [self._run_head(task) for task in range(self._n)]
        under_way = list(self._starts)
        for segment in lean.segments:
            self._run(segment, under_way)

    def combine(self, weights: Tensor, heads: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        """The gradient of each leaf: Σ weight × row for shared ones, Σ head × row for others.

        Raises:
            LossError: the backward of the shared part is not linear in what it is given.
        """
        yield from self._backward_of_all(weights)
        factors = heads.tolist()
        for edge in list(self._others):
            gradient = weighted_sum(self._others.pop(edge), factors)
            if gradient is not None:
                yield edge, gradient

    def _run_head(self, task: int) -> Cotangents:
        """Run, and free, what lies before the cut; the gradients there."""
        cut, leaves = self._plan.cuts[task], self._plan.heads[task]
        gradients = pull(self._plan.plan.starts[task], [*cut, *leaves], keep=False)
        for edge, gradient in zip(leaves, gradients[len(cut) :], strict=True):
            self._keep(edge, task, gradient)
        pairs = zip(cut, gradients[: len(cut)], strict=True)
        return {edge: compact(gradient) for edge, gradient in pairs if gradient is not None}

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
            self._take_layer(layer, rows.pop(layer.output))

    def _take(self, edge: GradientEdge, rows: list[Tensor | None]) -> None:
        if edge in self._meeting:
            add_products(self.gramian, rows)
        else:
            for task, row in enumerate(rows):
                self._keep(edge, task, row)

    def _take_layer(self, layer: Layer, outputs: list[Tensor | None]) -> None:
        present = [task for task, output in enumerate(outputs) if output is not None]
        for part in layer.rows([output for output in outputs if output is not None]):
            rows: list[Tensor | None] = [None] * self._n
            for task, row in zip(present, part, strict=True):
                rows[task] = row
            add_products(self.gramian, rows)

    def _keep(self, edge: GradientEdge, task: int, gradient: Tensor | None) -> None:
        if gradient is not None:
            rows = self._others.setdefault(edge, [None] * self._n)
            rows[task] = compact(gradient)

    def _backward_of_all(self, weights: Tensor) -> Iterator[tuple[GradientEdge, Tensor]]:
        together: Cotangents = {}
        for start, weight in zip(self._starts, weights.tolist(), strict=True):
            for edge in list(start):
                add_to(together, edge, start.pop(edge) * weight)
        gradients = pull(together, self._plan.rest, keep=False)
        pairs = zip(self._plan.rest, gradients, strict=True)
        found = [(edge, g) for edge, g in pairs if g is not None and edge in self._meeting]
        self._check_linear([gradient for _, gradient in found], weights)
        yield from found

    def _check_linear(self, gradients: Sequence[Tensor], weights: Tensor) -> None:
        """The combined gradient must have the length that the Gramian says."""
        if not gradients:
            return
        squares = [torch.linalg.vector_norm(_values(g), dtype=torch.float64) for g in gradients]
        found = float(torch.stack(squares).square().sum())
        expected = float(weights @ self.gramian @ weights)
        scale = float(weights.square() @ self.gramian.diagonal())
        eps = self._plan.plan.eps
        if abs(found - expected) > max(10 * eps**0.5, 1e-6) * scale:
            raise LossError(
                "the backward of the shared part is not linear (a hook or a custom Function that "
                f"clips or normalises gradients): |Jᵀw|² is {found:.6g}, but wᵀGw is "
                f"{expected:.6g}. No `.grad` was changed; give route='rows', which is exact here."
            )


def _crossing(cut: Sequence[GradientEdge]) -> bool:
    return one_behind_another(edge.node for edge in cut)


def _values(gradient: Tensor) -> Tensor:
    return gradient.coalesce().values() if gradient.is_sparse else gradient


def _before(starts: Cotangents, cut: Sequence[GradientEdge]) -> set[Node]:
    """The nodes from the starts down to the cut."""
    ends = {edge.node for edge in cut}
    seen: set[Node] = set()
    todo = [edge.node for edge in starts]
    while todo:
        node = todo.pop()
        if node not in ends and node not in seen:
            seen.add(node)
            todo += (child for child, _ in node.next_functions if child is not None)
    return seen
