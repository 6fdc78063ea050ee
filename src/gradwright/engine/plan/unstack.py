"""Where the backward of each loss starts.

Losses are often stacked, or written into one tensor by index (`t[i] = loss`), and then taken out
again one by one. Each of them then reaches all heads, with gradients of zero for the others': at
K = 16 a backward per loss was measured 6 times slower. Here the small nodes that join the losses
are walked once per loss, and each loss starts behind them, at its own head.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.basics.pull import Cotangents, edge_of, pull, zeros_at
from gradwright.engine.plan.borders import is_without_hook
from gradwright.graph import is_accumulator

_JOINING = frozenset({"StackBackward0", "CatBackward0", "torch::autograd::CopySlices"})


def starts_of(
    losses: Sequence[Tensor], scale: float = 1.0, *, n_tasks: int = 0, keep: bool = False
) -> list[Cotangents]:
    """For each loss the edges where its backward starts, with the gradient of the loss there.

    `n_tasks` counts those absent as well. Unless `keep`, what joined the losses is freed.
    """
    starts = [{edge_of(loss): torch.full_like(loss, scale)} for loss in losses]
    joined = _joined(starts, limit=max(n_tasks, len(losses)))
    behind = _edges_out_of(joined)
    while hooked := {edge.node for edge in behind if not is_without_hook(edge)}:
        if any(is_accumulator(node) for node in hooked):
            return starts
        joined |= hooked  # a pass that ends there and one that starts there would both run it
        behind = _edges_out_of(joined)
    if not joined:
        return starts
    arrived = [_behind(start, joined, behind) for start in starts]
    if not keep:
        _free(starts, behind)
    return _of_their_own(arrived)


def _joined(starts: list[Cotangents], limit: int) -> set[Node]:
    """The nodes from the losses down to where several of them were joined."""
    meeting: dict[Node, int] = {}
    small: set[Node] = set()
    for start in starts:
        reached = _small_below((edge.node for edge in start), limit)
        small |= reached
        for node in reached:
            if node.name() in _JOINING:
                meeting[node] = meeting.get(node, 0) + 1
    joiners = {node for node, count in meeting.items() if count > 1}
    return _leading_to(joiners, small) if joiners else set()


def _small_below(roots: Iterable[Node], limit: int) -> set[Node]:
    """The nodes below `roots` down to the first whose outputs have more than `limit` entries."""
    seen: set[Node] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node in seen or not _is_small(node, limit):
            continue
        seen.add(node)
        todo += (child for child, _ in node.next_functions if child is not None)
    return seen


def _is_small(node: Node, limit: int) -> bool:
    sizes = node._input_metadata
    return all(torch.Size(item.shape).numel() <= limit for item in sizes)


def _leading_to(targets: set[Node], among: set[Node]) -> set[Node]:
    """The nodes of `among` from which a node of `targets` can be reached within `among`."""
    parents: dict[Node, list[Node]] = {}
    for node in among:
        for child, _ in node.next_functions:
            if child in among:
                parents.setdefault(child, []).append(node)
    found = set(targets)
    todo = list(targets)
    while todo:
        for parent in parents.get(todo.pop(), ()):
            if parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


def _edges_out_of(nodes: set[Node]) -> list[GradientEdge]:
    edges = {
        GradientEdge(child, number): None
        for node in nodes
        for child, number in node.next_functions
        if child is not None and child not in nodes
    }
    return list(edges)


def _behind(start: Cotangents, joined: set[Node], behind: list[GradientEdge]) -> Cotangents:
    """The same gradient, carried through the nodes `joined` to the edges behind them."""
    if not any(edge.node in joined for edge in start):
        return start
    pairs = zip(behind, pull(start, behind, keep=True), strict=True)
    return {edge: value for edge, value in pairs if value is not None}


def _free(starts: Sequence[Cotangents], behind: Sequence[GradientEdge]) -> None:
    """Release what the joining nodes saved."""
    pull(zeros_at(starts), behind, keep=False)


def _of_their_own(arrived: Sequence[Cotangents]) -> list[Cotangents]:
    """Without the zeros that stand for the heads of other losses.

    A loss that has nothing but zeros (its weight is 0 in this step) keeps those that are nobody's.
    """
    values = [(task, edge) for task, start in enumerate(arrived) for edge in start]
    if not values:
        return list(arrived)
    counts = torch.stack([arrived[task][edge].count_nonzero() for task, edge in values]).tolist()
    there = {pair for pair, count in zip(values, counts, strict=True) if count}
    owned = {edge for _, edge in there}
    return [
        {edge: value for edge, value in start.items() if (task, edge) in there}
        or {edge: value for edge, value in start.items() if edge not in owned}
        for task, start in enumerate(arrived)
    ]
