"""Row methods as loops over one matrix [task, parameter], step by step as their papers write them.

Each takes the Jacobians of all steps and returns the updates of all steps.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def moco(
    steps: Sequence[Tensor], beta: float, gamma: float, rho: float, decay: float
) -> list[Tensor]:
    """y ← y + β_t (g - y); λ ← projection of λ - γ_t (Y Yᵀ + ρ I) λ; update Yᵀ λ."""
    n = len(steps[0])
    y, weights = torch.zeros_like(steps[0]), torch.full((n,), 1 / n, dtype=torch.float64)
    updates = []
    for t, J in enumerate(steps, start=1):
        y = y + beta / t**decay * (J - y)
        slope = (y @ y.T + rho * torch.eye(n, dtype=torch.float64)) @ weights
        weights = _nearest_on_simplex(weights - gamma / t**decay * slope)
        updates.append(y.T @ weights)
    return updates


def db_mtl(steps: Sequence[Tensor], losses: Tensor, beta: float) -> list[Tensor]:
    """y ← β y + (1 - β) ∇ log l; every y scaled to the longest, and summed."""
    y = torch.zeros_like(steps[0])
    updates = []
    for J in steps:
        y = beta * y + (1 - beta) * torch.stack(
            [g / loss for g, loss in zip(J, losses, strict=True)]
        )
        longest = max(row.norm() for row in y)
        updates.append(sum((longest / row.norm() * row for row in y), torch.zeros(len(y[0]))))
    return updates


def excess_mtl(steps: Sequence[Tensor], eta: float) -> list[Tensor]:
    """e = Σ g² / √S, by its first value; α ← α exp(η e); weights K α."""
    S, alpha = torch.zeros_like(steps[0]), [1.0] * len(steps[0])
    first: list[float] = []
    updates = []
    for J in steps:
        S = S + J**2
        e = [float((g * g / (s + 1e-7).sqrt()).sum()) for g, s in zip(J, S, strict=True)]
        if first:
            alpha = [a * math.exp(eta * x / f) for a, x, f in zip(alpha, e, first, strict=True)]
        first = first or e
        weights = torch.tensor(alpha, dtype=torch.float64) * len(alpha) / sum(alpha)
        updates.append(weights @ J)
    return updates


def meta_balance(
    steps: Sequence[Tensor], cuts: Sequence[int], relax: float, beta: float
) -> list[Tensor]:
    """Per part of the columns: n ← β n + (1 - β) ||g||, update Σ (r n₀ / n + 1 - r) g."""
    lengths = [[0.0] * len(steps[0]) for _ in cuts]
    updates = []
    for J in steps:
        parts = []
        for n, part in zip(lengths, J.split(list(cuts), dim=1), strict=True):
            for k, g in enumerate(part):
                n[k] = beta * n[k] + (1 - beta) * float(g.norm())
            factors = torch.tensor([relax * n[0] / nk + 1 - relax for nk in n], dtype=part.dtype)
            parts.append(factors @ part)
        updates.append(torch.cat(parts))
    return updates


def grad_drop(J: Tensor, U: Tensor, leak: Tensor) -> Tensor:
    """Coordinate by coordinate with the random numbers `U` [parameter]."""
    update = torch.zeros(J.shape[1], dtype=J.dtype)
    for i in range(J.shape[1]):
        column = J[:, i]
        if not column.any():
            continue
        P = 0.5 * (1 + column.sum() / column.abs().sum())
        for k, g in enumerate(column):
            kept = bool(U[i] < P) if g > 0 else bool(U[i] > P)
            update[i] += g if kept else leak[k] * g
    return update


def trimmed_mean(J: Tensor, trim: int) -> Tensor:
    """Coordinate by coordinate, without the `trim` largest and smallest."""
    columns = [sorted(column.tolist()) for column in J.T]
    kept = [column[trim : len(column) - trim] for column in columns]
    return torch.tensor([sum(column) / len(column) for column in kept], dtype=J.dtype)


def _nearest_on_simplex(point: Tensor) -> Tensor:
    """max(point - t, 0) with the t that makes the sum 1, found by halving an interval."""
    low, high = float(point.min()) - 1, float(point.max())
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if float((point - t).clamp(min=0).sum()) > 1 else (low, t)
    return (point - low).clamp(min=0)


def grad_vac(steps: Sequence[Tensor], cuts: Sequence[int], beta: float) -> list[Tensor]:
    """LibMTL's `GradVac_group_type`, for two tasks: each has one other, so there is no order."""
    targets = torch.zeros(2, 2, len(cuts), dtype=torch.float64)
    updates = []
    for J in steps:
        parts = []
        for group, part in enumerate(J.split(list(cuts), dim=1)):
            changed = part.clone()
            for i, j in ((0, 1), (1, 0)):
                t = targets[i, j, group].clone()
                phi = changed[i] @ part[j] / (changed[i].norm() * part[j].norm())
                if phi < t:
                    wanted = t * (1 - phi**2).sqrt() - phi * (1 - t**2).sqrt()
                    length = part[j].norm() * (1 - t**2).sqrt()
                    changed[i] += changed[i].norm() * wanted / length * part[j]
                targets[i, j, group] = (1 - beta) * t + beta * phi
            parts.append(changed.sum(0))
        updates.append(torch.cat(parts))
    return updates
