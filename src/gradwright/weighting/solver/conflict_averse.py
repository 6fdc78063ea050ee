"""The update near the mean gradient that helps the worst-off task most."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gradwright.weighting.solver.min_norm import is_stationary
from gradwright.weighting.solver.nonnegative import Nonnegative, minimise_nonnegative
from gradwright.weighting.solver.scaling import unit_diagonal

MOST_STEPS = 100


def conflict_averse(gramian: Tensor, c: float, rounding: float = 1e-12) -> Tensor:
    """The z ≥ 0 [task] for which d = g₀ + Jᵀ z has the largest minₖ gₖ·d with ‖d - g₀‖ ≤ c ‖g₀‖.

    g₀ is the mean gradient. With w = z / Σ z, this is the minimiser on the simplex of
    wᵀ G b + c ‖g₀‖ √(wᵀ G w), b = 1 / task, and z = c ‖g₀‖ w / √(wᵀ G w).

    The shortest Jᵀ z with gₖ·d ≥ μ for all k is a quadratic program over z ≥ 0; its length rises
    with μ, and the answer is at the μ where it is c ‖g₀‖. Where some mean of the gradients is 0, no
    μ above 0 can be had; if that of μ = 0 is shorter, it is the answer: the nearest d to g₀ that
    disagrees with no gradient. `rounding` is the relative precision of G.
    """
    cosines, lengths = unit_diagonal(gramian)
    size = lengths.max()
    mean = gramian.mean(dim=0) / (lengths * size)  # inner products with g₀ / size
    radius = float(c * gramian.mean().clamp(min=0).sqrt() / size)
    if radius == 0:
        return torch.zeros_like(lengths)
    most = 0.0 if is_stationary(gramian, rounding) else torch.inf
    problem = _Problem(cosines, mean, size / lengths, radius, most)
    return problem.solved().x[0] * size / lengths


@dataclass(frozen=True)
class _Problem:
    """For gradients of length 1: their cosines, inner products with g₀, and the μ each one asks."""

    cosines: Tensor
    mean: Tensor
    share: Tensor
    radius: float
    most: float  # the largest μ that can be had

    def at(self, mu: float, free: Tensor | None = None) -> Nonnegative:
        """The shortest Jᵀ z with gₖ·d ≥ μ for all k."""
        return minimise_nonnegative(self.cosines, (self.mean - mu * self.share)[None], free)

    def solved(self) -> Nonnegative:
        """At the μ whose Jᵀ z has the length `radius`: Newton's method, kept within bounds."""
        low = float((self.mean / self.share).min())
        high = mu = min(float(((self.mean + self.radius) / self.share).min()), self.most)
        found = self.at(mu)
        for _ in range(MOST_STEPS):
            excess = float(found.x[0] @ self.cosines @ found.x[0]) - self.radius**2
            if abs(excess) <= 1e-13 * self.radius**2 or (mu == self.most and excess < 0):
                break
            low, high = (low, mu) if excess > 0 else (mu, high)
            mu += self.change(found, excess)
            if not low < mu < high:
                mu = (low + high) / 2
            if mu in (low, high):
                break
            found = self.at(mu, found.free)
        return found

    def change(self, found: Nonnegative, excess: float) -> float:
        """What to add to μ: exact if the same entries of z stay above 0, when z is linear in μ."""
        free = found.free[0]
        share = self.share[free]
        slope = float(share @ found.x[0, free])
        ridge = 1e-10 * torch.eye(len(share), dtype=share.dtype)
        curvature = float(share @ torch.linalg.solve(self.cosines[free][:, free] + ridge, share))
        root = max(slope**2 - curvature * excess, 0.0) ** 0.5
        return -excess / (slope + root) if slope + root > 0 else 0.0
