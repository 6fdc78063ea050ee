"""What all routes are given: the losses of one step, and what was said of it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradwright.engine.losses import TaskLosses
from gradwright.engine.plan.shared import Shared
from gradwright.engine.plan.stages import Plan, plan_of
from gradwright.engine.plan.unstack import starts_of
from gradwright.engine.result import Backward, Route
from gradwright.engine.weights.bases import Weighting
from gradwright.engine.weights.heads import Heads, head_factors


@dataclass(frozen=True, slots=True)
class Step:
    """The losses of one batch, and how their gradients are wanted."""

    read: TaskLosses
    shared: Shared
    heads: Heads
    scale: float  # of the losses; gradients are written with it, weights are without
    keep: bool  # what the graph saved

    def plan(self) -> Plan:
        """The graph below the losses; what joined them is freed unless it is to be kept."""
        n_tasks = len(self.read.names)
        return plan_of(starts_of(self.read.tensors, self.scale, n_tasks=n_tasks, keep=self.keep))

    def factors(self, weighting: Weighting, weights: Tensor | None) -> Tensor:
        """What each task's head is multiplied by: [present task]."""
        return head_factors(self.heads, weighting, weights, self.read)

    def result(self, weights: Tensor | None, gramian: Tensor | None, route: Route) -> Backward:
        """The facts, of weights [present task] and a Gramian [present task, present task]."""
        return Backward(
            self.read.names,
            self.read.spread(self.read.values, torch.nan),
            None if weights is None else self.read.spread(weights, absent=0.0),
            None if gramian is None else self.read.spread(gramian, torch.nan),
            route,
        )
