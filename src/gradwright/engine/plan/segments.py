"""Where to cut the shared part, so that the gradients of all tasks can run through it in step."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.plan.frontier import Frontier, size_of
from gradwright.engine.plan.layers import Layer, layers_among
from gradwright.graph import edges_of, is_accumulator, run_order, saved_state

_MOST_CUTS = 64  # considered; choosing costs their square
_WORTH_A_PASS = 0.25  # of the rows of the other pass


@dataclass(frozen=True, slots=True)
class Segment:
    """A part that every task runs before any task goes on."""

    leaves: list[GradientEdge]  # whose gradients are kept for all tasks, within the segment
    layers: list[Layer]  # in place of their weights' gradients, those of their outputs
    exits: list[GradientEdge]  # where it ends; empty: what follows starts where this one started


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place where all that is under way is the gradient of one node's output."""

    position: int
    size: int  # bytes under way for one task
    rows: int  # bytes of the rows made before it, for one task
    edges: list[GradientEdge]


def segments_of(
    nodes: Sequence[Node],
    starts: Iterable[GradientEdge],
    start_size: int,
    meeting: Container[GradientEdge],
) -> list[Segment]:
    """Cut these nodes so that what is kept at a time is smallest.

    `start_size` is the number of bytes that one task has at the start. A weight where the tasks do
    not meet is no part of a layer: its gradients are wanted, not their products.
    """
    order = run_order(nodes)
    layers = {edge: one for edge, one in layers_among(order).items() if edge in meeting}
    cuts = _possible_cuts(order, starts, start_size, layers)
    chosen = _best(_thinned(cuts))
    segments = []
    for above, below in pairwise(chosen):
        inside = order[above.position : below.position]
        if below.rows - above.rows > cuts[-1].rows / 2:
            segments += _branches(inside, layers, below.edges)
        else:
            segments += _passes(inside, layers, below.edges)
    return segments


def _possible_cuts(
    order: Sequence[Node],
    starts: Iterable[GradientEdge],
    start_size: int,
    layers: Mapping[GradientEdge, Layer],
) -> list[_Cut]:
    frontier = Frontier(starts)
    cuts = [_Cut(0, start_size, 0, [])]
    rows = 0
    for position, node in enumerate(order, 1):
        frontier.run(node)
        rows += _row_size(node, layers)
        if frontier.n_nodes == 1 and position < len(order):
            edges = frontier.edges
            if not is_accumulator(edges[0].node):
                cuts.append(_Cut(position, frontier.size, rows, edges))
    return [*cuts, _Cut(len(order), 0, rows, [])]


def _row_size(node: Node, layers: Mapping[GradientEdge, Layer]) -> int:
    if not is_accumulator(node):
        return 0
    edge = GradientEdge(node, 0)
    layer = layers.get(edge)
    return size_of(edge if layer is None else layer.output)


def _thinned(cuts: Sequence[_Cut]) -> list[_Cut]:
    """Of many cuts the smallest of each of some stretches of equal row size."""
    if len(cuts) <= _MOST_CUTS:
        return list(cuts)
    step = cuts[-1].rows / (_MOST_CUTS - 2) or 1
    best: dict[int, _Cut] = {}
    for cut in cuts[1:-1]:
        stretch = int(cut.rows / step)
        if stretch not in best or cut.size < best[stretch].size:
            best[stretch] = cut
    return [cuts[0], *best.values(), cuts[-1]]


def _best(cuts: Sequence[_Cut]) -> list[_Cut]:
    """The cuts with the smallest peak; of those, the fewest."""
    reached: list[tuple[int, int, int]] = [(0, 0, 0)]  # peak, number of segments, from where
    for j in range(1, len(cuts)):
        below = cuts[j]
        options = []
        for i in range(j):
            above = cuts[i]
            kept = max(above.size, below.size) + below.rows - above.rows
            options.append((max(reached[i][0], kept), reached[i][1] + 1, i))
        reached.append(min(options))
    path = [len(cuts) - 1]
    while path[-1]:
        path.append(reached[path[-1]][2])
    return [cuts[index] for index in reversed(path)]


def _branches(
    order: Sequence[Node], layers: Mapping[GradientEdge, Layer], exits: list[GradientEdge]
) -> list[Segment]:
    """One segment, or several where the nodes fall into branches (experts) that never meet."""
    stem, branches = _split(order, layers)
    parts = [part for part in (stem, *branches) if any(is_accumulator(node) for node in part)]
    ends: list[list[GradientEdge]] = [[]] * (len(parts) - 1) + [exits]
    return [_segment(part, layers, end) for part, end in zip(parts, ends, strict=True)]


def _passes(
    order: Sequence[Node], layers: Mapping[GradientEdge, Layer], exits: list[GradientEdge]
) -> list[Segment]:
    """One segment, or two: first the rows near its start, which a pass reaches at no cost.

    The second pass goes the same way again, but what lies on it up to there saved no tensors: it
    adds, or changes shapes.
    """
    near = _near(order)
    parts = [[node for node in order if (node in near) is side] for side in (True, False)]
    rows = [sum(_row_size(node, layers) for node in part) for part in parts]
    if min(rows) <= _WORTH_A_PASS * max(rows):
        return [_segment(order, layers, exits)]
    return [_segment(parts[0], layers, []), _segment(parts[1], layers, exits)]


def _near(order: Sequence[Node]) -> set[Node]:
    """The leaves fed by one node that computes, with none above it.

    Such a node computes what a pass asks of it and no more, but for a custom Function, and for what
    must be unpacked first (a checkpoint).
    """
    above = dict.fromkeys(order, 0)  # nodes that compute, on the way to each node
    for node in order:
        here = above[node] + _computes(node)
        for child in edges_of(node):
            if child in above:
                above[child] = max(above[child], here)
    return {node for node in order if is_accumulator(node) and above[node] <= 1}


def _computes(node: Node) -> int:
    """0 for a node that saved nothing, 1 for one that did, 2 for one that never runs in parts."""
    state = saved_state(node).state
    in_parts = state == "live" and not isinstance(node, torch._C._FunctionBase)
    return 0 if state == "none" else 1 if in_parts else 2


def _segment(
    order: Iterable[Node], layers: Mapping[GradientEdge, Layer], exits: list[GradientEdge]
) -> Segment:
    edges = [GradientEdge(node, 0) for node in order if is_accumulator(node)]
    leaves = [edge for edge in edges if edge not in layers]
    return Segment(leaves, [layers[edge] for edge in edges if edge in layers], exits)


def _split(
    order: Sequence[Node], layers: Mapping[GradientEdge, Layer]
) -> tuple[Sequence[Node], list[list[Node]]]:
    """A stem and the branches below it, of which none has more than half of the rows."""
    total = sum(_row_size(node, layers) for node in order)
    part = _Parts(layers)
    best = 0
    for position in range(len(order) - 1, 0, -1):
        part.add(order[position])
        if part.total >= 0.9 * total and part.largest <= 0.5 * total:
            best = position
    if not best:
        return order, []
    below = _Parts(layers)
    for node in reversed(order[best:]):
        below.add(node)
    return order[:best], below.groups(order[best:], at_least=0.1 * total)


class _Parts:
    """Nodes added from the leaves upwards, and which of them hang together."""

    def __init__(self, layers: Mapping[GradientEdge, Layer]) -> None:
        self._layers = layers
        self._parent: dict[Node, Node] = {}
        self._size: dict[Node, int] = {}
        self.total = self.largest = 0

    def add(self, node: Node) -> None:
        self._parent[node] = node
        size = _row_size(node, self._layers)
        self.total += size
        for child in edges_of(node):
            if child in self._parent:
                top = self._top(child)
                if top is not node:
                    size += self._size.pop(top)
                    self._parent[top] = node
        self._size[node] = size
        self.largest = max(self.largest, size)

    def groups(self, order: Iterable[Node], at_least: float) -> list[list[Node]]:
        """The nodes of each part, in order; parts of fewer bytes of rows are one group."""
        small: list[Node] = []
        found: dict[Node, list[Node]] = {}
        for node in order:
            top = self._top(node)
            large = self._size[top] >= at_least
            (found.setdefault(top, []) if large else small).append(node)
        return [*found.values(), small]

    def _top(self, node: Node) -> Node:
        while self._parent[node] is not node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node
