"""Walks over the autograd graph, from roots towards leaves."""

import heapq
from collections.abc import Collection, Iterable, Iterator

import torch
from torch.autograd.graph import Node

ACCUMULATE_GRAD = "torch::autograd::AccumulateGrad"


def is_accumulator(node: Node) -> bool:
    """Whether `node` is the end of the graph that adds into a leaf's `.grad`."""
    return node.name() == ACCUMULATE_GRAD


def edges_of(node: Node) -> Iterator[Node]:
    """The nodes that run after `node` in backward."""
    for child, _ in node.next_functions:
        if child is not None:
            yield child


def reachable(roots: Iterable[Node]) -> set[Node]:
    """All nodes that a backward from `roots` could run, the roots included."""
    seen = set(roots)
    todo = list(seen)
    while todo:
        for child in edges_of(todo.pop()):
            if child not in seen:
                seen.add(child)
                todo.append(child)
    return seen


def leaves(roots: Iterable[Node]) -> list[torch.Tensor]:
    """The leaf tensors that a backward from `roots` reaches, each once."""
    return [leaf_of(node) for node in reachable(roots) if is_accumulator(node)]


def leaf_of(accumulator: Node) -> torch.Tensor:
    """The leaf tensor that an AccumulateGrad node adds to."""
    variable: torch.Tensor = accumulator.variable  # type: ignore[attr-defined]
    return variable


def engine_order(roots: Iterable[Node]) -> list[Node]:
    """The nodes of a backward from `roots`, in the order the engine runs them on one thread."""
    start = list(dict.fromkeys(roots))
    return run_order([*start, *reachable(start).difference(start)])


def run_order(nodes: Collection[Node]) -> list[Node]:
    """These nodes in the order the engine would run them on one thread.

    A node runs when all that feed it have run; among those that are ready, the one made last
    goes first, and leaves at once (torch/csrc/autograd/engine.cpp, `ReadyQueue`).
    """
    waiting_for = dict.fromkeys(nodes, 0)
    for node in nodes:
        for child in edges_of(node):
            if child in waiting_for:
                waiting_for[child] += 1
    ready = [
        (-node._sequence_nr(), n, node) for n, node in enumerate(nodes) if not waiting_for[node]
    ]
    heapq.heapify(ready)
    order: list[Node] = []
    ticket = len(waiting_for)
    while ready:
        node = heapq.heappop(ready)[2]
        order.append(node)
        for child in edges_of(node):
            if child not in waiting_for:
                continue
            waiting_for[child] -= 1
            if not waiting_for[child]:
                ticket += 1
                heapq.heappush(ready, (-child._sequence_nr(), ticket, child))
    return order
