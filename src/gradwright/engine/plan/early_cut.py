"""Where to end the pass of each head, so that little has to be kept for every task.

The border to the shared part is one place. Where a head begins with a pooling or a gate, a place
a few nodes earlier holds far less: a mixture [batch, d] in place of all experts
[expert, batch, d]. What lies between runs once more in each later call.
"""

from collections.abc import Sequence

from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.plan.frontier import Frontier, size_of
from gradwright.engine.plan.reach import count
from gradwright.engine.plan.stages import Plan
from gradwright.graph import run_order

_WORTH = 0.25  # of the border's size


def early_cuts(plan: Plan) -> list[list[GradientEdge]]:
    """For each task the edges where its head's pass ends."""
    heads: list[list[Node]] = [[] for _ in range(plan.n_tasks)]
    shared_size = 0
    for node, tasks in plan.reach.items():
        if count(tasks) == 1:
            heads[tasks.bit_length() - 1].append(node)
    for stage in plan.stages:
        if count(stage.tasks) > 1:
            shared_size += sum(size_of(edge) for edge in stage.leaves)
    return [_cut(plan, task, nodes, shared_size) for task, nodes in enumerate(heads)]


def _cut(plan: Plan, task: int, head: Sequence[Node], shared_size: int) -> list[GradientEdge]:
    order = run_order(head)
    frontier = Frontier(plan.starts[task])
    sizes = []
    for node in order:
        frontier.run(node)
        sizes.append(frontier.size)
    border = frontier.edges
    if not order or sizes[-1] * plan.n_tasks <= _WORTH * shared_size:
        return border
    small = [n for n, size in enumerate(sizes, 1) if size <= _WORTH * sizes[-1]]
    return _edges_after(plan, task, order[: small[-1]]) if small else border


def _edges_after(plan: Plan, task: int, ran: Sequence[Node]) -> list[GradientEdge]:
    frontier = Frontier(plan.starts[task])
    for node in ran:
        frontier.run(node)
    return frontier.edges
