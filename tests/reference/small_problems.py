"""Slow, obvious solutions of the K×K problems: all subsets, nested searches, bisection."""

from collections.abc import Callable, Iterator
from itertools import combinations

import torch
from torch import Tensor


def subsets(n_tasks: int) -> Iterator[list[int]]:
    """All subsets of the tasks that are not empty."""
    for size in range(1, n_tasks + 1):
        for subset in combinations(range(n_tasks), size):
            yield list(subset)


def shortest_in_hull(jacobian: Tensor) -> Tensor:
    """The shortest vector in the convex hull of the rows: the best one over all subsets of them.

    On each subset, the shortest vector of the plane through the rows, where that is in the hull.
    """
    best = jacobian[jacobian.square().sum(dim=1).argmin()]
    for subset in subsets(len(jacobian)):
        rows = jacobian[subset]
        across = rows[1:] - rows[0]
        steps = torch.linalg.lstsq(across.T, -rows[0][:, None], driver="gelsd").solution[:, 0]
        weights = torch.cat([1 - steps.sum(dim=0, keepdim=True), steps])
        found = weights @ rows
        if (weights >= -1e-9).all() and found.norm() < best.norm():
            best = found
    return best


def nearest_without_conflict(jacobian: Tensor, vector: Tensor) -> Tensor:
    """The vector nearest to `vector` with inner products of at least 0 with all rows.

    It is the nearest one that is orthogonal to the rows of some subset.
    """
    candidates = [vector]
    for subset in subsets(len(jacobian)):
        rows = jacobian[subset]
        candidates.append(vector - torch.linalg.pinv(rows, rtol=1e-10) @ (rows @ vector))
    allowed = [one for one in candidates if (jacobian @ one >= -1e-9 * jacobian.norm()).all()]
    return min(allowed, key=lambda one: float((one - vector).norm()))


def lowest(function: Callable[[float], float], rounds: int = 50) -> tuple[float, float]:
    """Where in [0, 1] a convex function is lowest, and its value there: by thirds."""
    low, high = 0.0, 1.0
    for _ in range(rounds):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if function(left) < function(right):
            high = right
        else:
            low = left
    return low, function(low)


def lowest_on_simplex(function: Callable[[Tensor], float], n_tasks: int) -> float:
    """The lowest value of a convex function of two or three weights that sum to 1."""
    if n_tasks == 2:
        return lowest(lambda a: function(torch.tensor([a, 1 - a], dtype=torch.float64)))[1]

    def along(a: float) -> float:
        return lowest(
            lambda b: function(
                torch.tensor([a, (1 - a) * b, (1 - a) * (1 - b)], dtype=torch.float64)
            )
        )[1]

    return lowest(along)[1]


def fair_weights(gramian: Tensor, alpha: float, rounds: int) -> Tensor:
    """G w = w^(-1/alpha), solved for one weight after the other, by bisection, again and again."""
    weights = torch.ones(len(gramian), dtype=gramian.dtype)
    for _ in range(rounds):
        for task in range(len(gramian)):
            others = float(gramian[task] @ weights - gramian[task, task] * weights[task])
            weights[task] = _root(float(gramian[task, task]), others, 1 / alpha)
    return weights


def _root(square: float, others: float, p: float) -> float:
    """The w > 0 with square w + others = w⁻ᵖ, on a logarithmic scale."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        w = 2.0**middle
        if square * w + others < w**-p:
            low = middle
        else:
            high = middle
    return float(2.0**low)
