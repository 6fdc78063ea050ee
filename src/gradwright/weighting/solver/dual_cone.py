"""The nearest vector that disagrees with no gradient."""

from torch import Tensor

from gradwright.weighting.solver.nonnegative import minimise_nonnegative
from gradwright.weighting.solver.scaling import unit_diagonal


def project_on_dual_cone(gramian: Tensor, weights: Tensor) -> Tensor:
    """For each row u of `weights` [problem, task], the v ≥ u that minimises vᵀ G v.

    Jᵀ v is then the vector nearest to Jᵀ u whose inner product with no gradient is below 0.

    Quinton, Rey. Jacobian Descent for Multi-Objective Optimization. 2024. Proposition 1.
    """
    cosines, lengths = unit_diagonal(gramian)
    scaled = weights * lengths
    size = scaled.abs().amax(dim=1, keepdim=True)
    size = size.masked_fill(size == 0, 1)
    added = minimise_nonnegative(cosines, scaled / size @ cosines).x
    return weights + added * size / lengths
