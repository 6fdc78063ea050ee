"""The shortest vector in the convex hull of the gradients."""

from torch import Tensor

from gradwright.weighting.solver.nonnegative import minimise_nonnegative
from gradwright.weighting.solver.scaling import unit_diagonal


def min_norm(gramian: Tensor) -> Tensor:
    """The w ≥ 0 with sum 1 that minimises wᵀ G w, for `gramian` G [task, task].

    The simplex constraint goes into the objective: the minimiser of wᵀ G w + (1 - Σ w)² over w ≥ 0
    is a multiple of the answer. If some gradients are 0, they share the weight equally.
    """
    zero = gramian.diagonal() <= 0
    if zero.any():
        return zero.double() / zero.sum()
    cosines, lengths = unit_diagonal(gramian)
    ones = lengths.min() / lengths  # the vector of ones, for gradients scaled to length 1
    scaled = minimise_nonnegative(cosines + ones.outer(ones), -ones[None]).x[0]
    weights = scaled * ones
    return weights / weights.sum()


def is_stationary(gramian: Tensor, precision: float) -> bool:
    """Whether some mean of the gradients is 0 up to rounding: no step helps all tasks."""
    weights = min_norm(gramian)
    lengths = gramian.diagonal().clamp(min=0).sqrt()
    squared = weights @ gramian @ weights
    return bool(squared <= precision * (weights @ lengths).square())
