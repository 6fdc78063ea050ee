"""Which losses reach which node of the graph: heads are reached by one, shared parts by several."""

from collections.abc import Iterable, Sequence

from torch.autograd.graph import Node

from gradwright.engine.basics.pull import Cotangents

Tasks = int
"""A set of tasks as bits: bit k for task k."""


def reach_of(starts: Sequence[Cotangents]) -> dict[Node, Tasks]:
    """Each node below the losses and the tasks that reach it; walks the graph once.

    The nodes come in an order in which they can run: each before those it hands gradients to.
    """
    order = _topological([edge.node for start in starts for edge in start])
    tasks = dict.fromkeys(order, 0)
    for task, start in enumerate(starts):
        for edge in start:
            tasks[edge.node] |= 1 << task
    for node in order:
        mine = tasks[node]
        for child, _ in node.next_functions:
            if child is not None:
                tasks[child] |= mine
    return tasks


def count(tasks: Tasks) -> int:
    """How many tasks are in the set."""
    return tasks.bit_count()


def last(tasks: Tasks) -> int:
    """The task of the set that runs last."""
    return tasks.bit_length() - 1


def _topological(roots: Iterable[Node]) -> list[Node]:
    """All nodes below `roots`, each before the nodes it hands gradients to."""
    done: set[Node] = set()
    order: list[Node] = []
    todo = [(root, False) for root in roots]
    while todo:
        node, expanded = todo.pop()
        if expanded:
            order.append(node)
        elif node not in done:
            done.add(node)
            todo.append((node, True))
            todo += ((c, False) for c, _ in node.next_functions if c is not None and c not in done)
    order.reverse()
    return order
