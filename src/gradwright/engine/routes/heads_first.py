"""Heads first: each head runs once, and is freed, before anything goes through the shared part."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.basics.pull import Cotangents, compact, pull
from gradwright.engine.plan.borders import can_cut, is_without_hook, one_behind_another
from gradwright.engine.plan.early_cut import early_cuts
from gradwright.engine.plan.stages import Plan
from gradwright.engine.routes.rows import Rows

# Carries something from a module's output to its input, of one pass at a time.
_MODULE_HOOK = "BackwardHookFunctionBackward"


@dataclass(frozen=True, slots=True)
class HeadCuts:
    """Where the pass of each head ends."""

    cuts: list[list[GradientEdge]]  # [task]
    leaves: list[list[GradientEdge]]  # [task], those before the cut
    gone: set[Node]  # all nodes before the cuts


def head_cuts(plan: Plan, needed: Iterable[GradientEdge]) -> HeadCuts | None:
    """The cuts, or None where they would not be exact (see `borders`) or before what is needed."""
    if not can_cut(plan):
        return None
    cuts = early_cuts(plan)
    ran = [_before(start, cut) for start, cut in zip(plan.starts, cuts, strict=True)]
    gone = set().union(*ran)
    if any(edge.node in gone for edge in needed) or any(map(_crossing, cuts)):
        return None
    if any(node.name() == _MODULE_HOOK for node in plan.reach):
        return None
    if not all(is_without_hook(edge) for edge in {edge for cut in cuts for edge in cut}):
        return None
    leaves = [[edge for edge in plan.leaves if edge.node in nodes] for nodes in ran]
    return HeadCuts(cuts, leaves, gone)


def run_heads(plan: Plan, found: HeadCuts, *, keep: bool) -> tuple[Plan, Rows]:
    """The plan of what is left, and the gradients at the leaves of the heads."""
    starts: list[Cotangents] = []
    rows: Rows = {}
    for task, (cut, leaves) in enumerate(zip(found.cuts, found.leaves, strict=True)):
        gradients = pull(plan.starts[task], [*cut, *leaves], keep=keep)
        for edge, gradient in zip(leaves, gradients[len(cut) :], strict=True):
            if gradient is not None:
                rows.setdefault(edge, [None] * plan.n_tasks)[task] = compact(gradient)
        pairs = zip(cut, gradients[: len(cut)], strict=True)
        starts.append({edge: compact(gradient) for edge, gradient in pairs if gradient is not None})
    rest = {edge for edge in plan.leaves if edge.node not in found.gone}
    return replace(plan, starts=starts).only(rest), rows


def _crossing(cut: Sequence[GradientEdge]) -> bool:
    return one_behind_another(edge.node for edge in cut)


def _before(starts: Cotangents, cut: Collection[GradientEdge]) -> set[Node]:
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
