"""The small problems that the methods pose: K×K, in float64, each solved in its own file.

All of them are scaled to gradients of length 1 first, so that tasks whose gradients differ by
factors of 10,000 lose no digits to each other, and none needs anything but torch.
"""

from gradwright.weighting.solver.conflict_averse import conflict_averse
from gradwright.weighting.solver.dual_cone import project_on_dual_cone
from gradwright.weighting.solver.fair_share import fair_share
from gradwright.weighting.solver.min_norm import is_stationary, min_norm
from gradwright.weighting.solver.nonnegative import Nonnegative, minimise_nonnegative
from gradwright.weighting.solver.scaling import precision, unit_diagonal
from gradwright.weighting.solver.simplex import project_on_simplex
from gradwright.weighting.solver.spectrum import Spectrum, spectrum

__all__ = [
    "fair_share",
    "min_norm",
    "is_stationary",
    "project_on_dual_cone",
    "conflict_averse",
    "minimise_nonnegative",
    "Nonnegative",
    "project_on_simplex",
    "spectrum",
    "Spectrum",
    "unit_diagonal",
    "precision",
]
