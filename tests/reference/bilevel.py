"""What bilevel methods differentiate and solve, the slow way."""

from collections.abc import Callable

import torch
from torch import Tensor


def slope_by_differences(value: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """d value / d at [n] or [m, n] by central differences; `value` gives a scalar or [m]."""
    columns = []
    for k in range(len(at)):
        step = torch.zeros_like(at)
        step[k] = 1e-5
        columns.append((value(at + step) - value(at - step)) / 2e-5)
    return torch.stack(columns, dim=-1)


def forum_mix(G: Tensor, along: Tensor, squared: float, phi: float, pieces: int) -> float:
    """The least value of FORUM's problem over a grid of mixes of up to three tasks.

    For a given λ the objective rises with ν from below its bound, so ν is the bound.
    """
    return min(forum_value(G, along, squared, phi, mix) for mix in _grid(len(G), pieces))


def forum_value(G: Tensor, along: Tensor, squared: float, phi: float, mix: Tensor) -> float:
    """||Σ λ g + ν ∇q||² - ν φ ||∇q||² with the best ν that is allowed."""
    bound = max(float(mix @ (phi - along / squared)), 0.0)
    nu = max(bound, phi / 2 - float(mix @ along) / squared)
    return float(mix @ G @ mix + 2 * nu * (mix @ along) + nu**2 * squared - nu * phi * squared)


def _grid(n: int, pieces: int) -> list[Tensor]:
    if n == 1:
        return [torch.ones(1, dtype=torch.float64)]
    steps = range(pieces + 1)
    if n == 2:
        found = [(i, pieces - i) for i in steps]
        return [torch.tensor(mix, dtype=torch.float64) / pieces for mix in found]
    triples = [(i, j, pieces - i - j) for i in steps for j in steps if i + j <= pieces]
    return [torch.tensor(mix, dtype=torch.float64) / pieces for mix in triples]
