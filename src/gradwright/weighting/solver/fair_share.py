"""Weights at which no task gains by bargaining for more."""

import torch
from torch import Tensor

from gradwright.weighting.solver.scaling import unit_diagonal

MOST_STEPS = 200

LIMIT = 1e4
"""Largest weight of a gradient of length 1: float32 gradients with it are good to 3 digits."""


def fair_share(gramian: Tensor, alpha: float = 1.0, rounding: float = 1e-12) -> Tensor:
    """The w > 0 with (G w)ₖ = wₖ^(-1/alpha) for all k, for `gramian` G [task, task].

    It minimises the convex ½ wᵀ G w - Σ φ(wₖ) with φ'(w) = w^(-1/alpha). There is none where some
    mean of the gradients is 0; then the weights would grow forever, and the search stops where they
    reach a limit, counted in gradients of length 1. A gradient of 0 gets the weight 0.
    `rounding` is the relative precision of G.
    """
    present = gramian.diagonal() > 0
    weights = torch.zeros(len(gramian), dtype=gramian.dtype)
    if present.any():
        weights[present] = _of_nonzero(gramian[present][:, present], 1 / alpha, rounding)
    return weights


def _of_nonzero(gramian: Tensor, p: float, rounding: float) -> Tensor:
    """Solves M v = m v⁻ᵖ, where w = s v with the s that would be right without any conflict."""
    cosines, lengths = unit_diagonal(gramian)
    s = lengths ** (-2 / (1 + p))
    m = lengths ** ((2 * p - 2) / (1 + p))
    m = m / m.mean()
    root = m.sqrt()
    return s * _newton(cosines * root.outer(root), m, p, min(LIMIT, rounding**-0.5))


def _newton(M: Tensor, m: Tensor, p: float, limit: float) -> Tensor:
    """Newton's method, with steps so short that every one lowers the convex objective.

    With r the largest fraction by which an entry would fall, the step 1 / (1 + (1 + p) r) keeps
    all entries above 0 and the curvature between both ends below what the step assumes.
    """
    ridge = 1e-10 * m  # M may be singular, and short of that by rounding
    v = (m.sum() / M.sum().clamp(min=1e-6 * float(m.sum()))) ** (1 / (1 + p)) * torch.ones_like(m)
    error = float("inf")
    for _ in range(MOST_STEPS):
        wanted = m * v**-p
        slope = M @ v - wanted
        before, error = error, float((slope / wanted).abs().max())
        if error < 1e-13 or (error < 1e-8 and error > before / 2):
            break  # as exact as rounding allows
        factor = torch.linalg.cholesky_ex(M + torch.diag(p * wanted / v + ridge)).L
        step = torch.cholesky_solve(-slope[:, None], factor)[:, 0]
        fall = float((-step / v).max().clamp(min=0))
        v = v + step / (1 + (1 + p) * fall)
        if v.max() > limit:
            break
    return v
