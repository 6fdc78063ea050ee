"""Routes "sum" and "losses": the weights are known from the losses, so one backward is enough."""

import torch

from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.plan.stages import plan_of
from gradwright.engine.plan.unstack import starts_of
from gradwright.engine.result import Backward, Route
from gradwright.engine.step import Step
from gradwright.engine.weights.asking import ask
from gradwright.engine.weights.bases import LossWeighting

_SUM = Route("sum", "no weighting was given, so the losses are added: one backward")


def backward_of_sum(step: Step, weighting: LossWeighting | None) -> Backward:
    """One backward of the losses, each times its weight."""
    read = step.read
    if step.shared is not None:  # nothing needs it; but what is wrong with it is said
        starts = starts_of(read.tensors, n_tasks=len(read.names), keep=True)
        shared_leaves(plan_of(starts), step.shared)
    weights, route = None, _SUM
    factors = [step.scale] * len(read.tensors)
    if weighting is not None:
        weights = ask(weighting, read, read.values)
        factors = (weights * step.scale).tolist()
        name = weighting._get_name()
        route = Route("losses", f"{name} reads the losses alone: one backward of their sum")
    gradients = [torch.full_like(loss, f) for loss, f in zip(read.tensors, factors, strict=True)]
    torch.autograd.backward(read.tensors, gradients, retain_graph=step.keep)
    return step.result(weights, None, route)
