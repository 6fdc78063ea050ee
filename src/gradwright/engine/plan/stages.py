"""The graph in stages: the nodes that the same losses reach run, and are freed, together.

What hands gradients on is reached by no more losses than what takes them, so the stages have an
order: first the heads (one loss each), then what ever more losses share. A stage is freed in the
pass of the last loss that reaches it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.basics.pull import Cotangents
from gradwright.engine.plan.reach import Tasks, count, last, reach_of
from gradwright.graph.walk import is_accumulator, leaf_of


@dataclass(slots=True)
class Stage:
    """The nodes that exactly these tasks reach."""

    tasks: Tasks
    exits: list[GradientEdge] = field(default_factory=list)  # into stages of more tasks
    leaves: dict[GradientEdge, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leg:
    """Stages of one task's pass that one call into the engine can run."""

    stages: frozenset[Tasks]
    exits: list[GradientEdge]
    leaves: list[GradientEdge]
    keep: bool  # other tasks need these nodes after this one


@dataclass(frozen=True, slots=True)
class Plan:
    """What the backward of each task consists of."""

    starts: Sequence[Cotangents]  # [task]
    reach: dict[Node, Tasks]  # in the order in which the nodes can run
    stages: Sequence[Stage]  # in the order in which they run

    @property
    def n_tasks(self) -> int:
        """The number of losses."""
        return len(self.starts)

    @property
    def leaves(self) -> dict[GradientEdge, Tensor]:
        """Every leaf that a loss reaches."""
        return {edge: leaf for stage in self.stages for edge, leaf in stage.leaves.items()}

    def only(self, edges: Collection[GradientEdge]) -> "Plan":
        """The same passes, for the gradients at these leaves alone."""
        stages = [
            replace(stage, leaves={e: leaf for e, leaf in stage.leaves.items() if e in edges})
            for stage in self.stages
        ]
        return replace(self, stages=stages)

    @property
    def borders(self) -> list[GradientEdge]:
        """Where one stage hands gradients to another."""
        return list(dict.fromkeys(edge for stage in self.stages for edge in stage.exits))

    @property
    def eps(self) -> float:
        """The coarsest precision of all gradients on the way."""
        kinds = {item.dtype for node in self.reach for item in node._input_metadata}
        return max(
            torch.finfo(kind).eps for kind in kinds if kind.is_floating_point or kind.is_complex
        )

    def legs(self) -> Iterator[Leg]:
        """The legs of all tasks."""
        for task in range(self.n_tasks):
            yield from self.legs_of(task)

    def legs_of(self, task: int) -> list[Leg]:
        """The calls of one task's pass, in order; neighbours that are freed alike are one call."""
        groups: list[list[Stage]] = []
        for stage in (stage for stage in self.stages if stage.tasks >> task & 1):
            if groups and _keep(groups[-1][0], task) == _keep(stage, task):
                groups[-1].append(stage)
            else:
                groups.append([stage])
        return [self._leg(stages, _keep(stages[0], task)) for stages in groups]

    def whole(self, task: int) -> Leg:
        """The pass of one task as a single call, which frees nothing."""
        return self._leg([stage for stage in self.stages if stage.tasks >> task & 1], keep=True)

    def _leg(self, stages: Sequence[Stage], keep: bool) -> Leg:
        inside = frozenset(stage.tasks for stage in stages)
        exits = dict.fromkeys(edge for stage in stages for edge in stage.exits)
        outward = [edge for edge in exits if self.reach[edge.node] not in inside]
        return Leg(inside, outward, [edge for stage in stages for edge in stage.leaves], keep)


def plan_of(starts: Sequence[Cotangents]) -> Plan:
    """Read the stages from the graph below the losses."""
    reach = reach_of(starts)
    stages: dict[Tasks, Stage] = {}
    for node, tasks in reach.items():
        stage = stages.setdefault(tasks, Stage(tasks))
        if is_accumulator(node):
            stage.leaves[GradientEdge(node, 0)] = leaf_of(node)
        stage.exits += (
            GradientEdge(child, number)
            for child, number in node.next_functions
            if child is not None and reach[child] != tasks
        )
    return Plan(starts, reach, sorted(stages.values(), key=lambda stage: count(stage.tasks)))


def _keep(stage: Stage, task: int) -> bool:
    return task != last(stage.tasks)
