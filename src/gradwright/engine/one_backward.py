"""Routes "sum" and "losses": the weights are known from the losses, so one backward is enough."""

import torch

from gradwright.engine.losses import TaskLosses
from gradwright.engine.result import Backward, Route
from gradwright.engine.weighting import LossWeighting
from gradwright.engine.weights import ask

_SUM = Route("sum", "no weighting was given, so the losses are added: one backward")


def backward_of_sum(
    read: TaskLosses,
    weighting: LossWeighting | None,
    scale: float,
    retain_graph: bool,
) -> Backward:
    """One backward of the losses, each times its weight."""
    weights, route = None, _SUM
    factors = [scale] * len(read.tensors)
    if weighting is not None:
        weights = ask(weighting, read, read.values)
        factors = (weights * scale).tolist()
        name = type(weighting).__name__
        route = Route("losses", f"{name} reads the losses alone: one backward of their sum")
    gradients = [torch.full_like(loss, f) for loss, f in zip(read.tensors, factors, strict=True)]
    torch.autograd.backward(read.tensors, gradients, retain_graph=retain_graph)
    spread = None if weights is None else read.spread(weights, absent=0.0)
    return Backward(read.names, read.spread(read.values, torch.nan), spread, None, route)
