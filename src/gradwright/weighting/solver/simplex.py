"""The nearest point of the simplex."""

import torch
from torch import Tensor


def project_on_simplex(points: Tensor) -> Tensor:
    """The nearest w ≥ 0 with sum 1 to each of `points` [..., task].

    w = max(point - t, 0), with the t that makes the sum 1. Sorted in falling order p₁ ≥ p₂ ≥ …,
    t = (p₁ + … + pₙ - 1) / n for the largest n with pₙ > t.

    Held, Wolfe, Crowder. Validation of subgradient optimization. Mathematical Programming, 1974.
    """
    points = points - points.amax(dim=-1, keepdim=True)  # the same answer; 1e20 would hide the 1
    falling = points.sort(dim=-1, descending=True).values
    count = torch.arange(1, points.shape[-1] + 1, dtype=points.dtype, device=points.device)
    thresholds = (falling.cumsum(-1) - 1) / count
    kept = (falling > thresholds).sum(-1, keepdim=True)
    return (points - thresholds.gather(-1, kept - 1)).clamp(min=0)
