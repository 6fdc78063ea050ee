"""Conflict-averse gradient descent."""

from typing import Literal

from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_not_negative
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.solver import conflict_averse, precision

Rescale = Literal[0, 1, 2]


class CAGrad(GramianWeighting):
    """The update near the mean gradient that helps the task that it helps least as much as can be.

    d = argmax min_k g_k·d over ‖d - g₀‖ ≤ c ‖g₀‖, with g₀ the mean gradient. Its dual is over the
    simplex: v = argmin vᵀ G b + c ‖g₀‖ √(vᵀ G v) with b = 1 / task, and then
    w = b + (c ‖g₀‖ / √(vᵀ G v)) v, divided by 1, 1 + c² or 1 + c.

    Liu, Liu, Jin, Stone and Liu, Conflict-Averse Gradient Descent for Multi-task Learning, NeurIPS
    2021, algorithm 1, https://arxiv.org/abs/2110.14048. Defaults are those
    of LibMTL and the official code; TorchJD has no default c and divides by 1. Where some mean of
    the gradients is 0, d is not unique: we take the one nearest to g₀, TorchJD takes 0.

    Called with a Gramian [task, task], returns weights [task]. A gradient of 0 is helped by
    nothing, so with one the update is the nearest to g₀ that disagrees with no task.

    Args:
        c: how far to go from the mean gradient, in lengths of it.
        rescale: divide by 1 (0), 1 + c² (1) or 1 + c (2).

    Example:
        >>> import torch
        >>> CAGrad(c=0.5, rescale=0)(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        tensor([1.0000, 0.5000])
    """

    def __init__(self, c: float = 0.5, rescale: Rescale = 1) -> None:
        check_not_negative("c", c)
        if rescale not in (0, 1, 2):
            raise ValueError(f"`rescale` needs to be 0, 1 or 2: got {rescale!r}.")
        super().__init__()
        self.c = c
        self.rescale = rescale

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task], each at least 1 / task before rescaling."""
        G = read_gramian(gramian)
        weights = 1 / len(G) + conflict_averse(G, self.c, precision(gramian))
        divisors = (1, 1 + self.c**2, 1 + self.c)
        return (weights / divisors[self.rescale]).to(gramian)
