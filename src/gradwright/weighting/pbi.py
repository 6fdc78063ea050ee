"""Penalty-based boundary intersection."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_not_negative, finite_vector, preference_vector
from gradwright.weighting.values import state_of, wide


class PBI(Scalarization):
    """How far the losses are along the preference's direction, and how far off it.

    f(l) = d₁ + θ d₂ with d₁ = (l - z) · u, d₂ = ||l - z - d₁ u|| and u the preference scaled to
    length 1.

    Zhang and Li, MOEA/D: A Multiobjective Evolutionary Algorithm Based on Decomposition, IEEE
    Transactions on Evolutionary Computation 2007, section III.A.3,
    https://doi.org/10.1109/TEVC.2007.892759. As in TorchJD, which adds a constant to d₂ to have a
    gradient on the direction itself; there we take the gradient of d₁ alone.

    Called with losses [task], returns weights [task], which can be negative.

    Args:
        preference: the direction, one number per task, 0 or more.
        theta: θ; 5 as in the paper's experiments.
        ideal: z, the best value each loss could have; by default 0.

    Example:
        >>> PBI([1.0, 1.0], theta=0.5)(torch.tensor([1.0, 3.0]))
        tensor([0.3536, 1.0607])
    """

    preference: Tensor
    ideal: Tensor

    def __init__(
        self,
        preference: Sequence[float] | Tensor,
        theta: float = 5.0,
        ideal: Sequence[float] | Tensor | None = None,
    ) -> None:
        check_not_negative("theta", theta)
        super().__init__()
        self.theta = theta
        self.register_buffer("preference", preference_vector("preference", preference))
        lowest = torch.zeros_like(self.preference) if ideal is None else ideal
        self.register_buffer("ideal", finite_vector("ideal", lowest))

    def total(self, losses: Tensor) -> Tensor:
        """d₁ + θ d₂."""
        direction = state_of(self, self.preference, losses)
        u: Tensor = direction / torch.linalg.vector_norm(direction)
        values = wide(losses) - state_of(self, self.ideal, losses)
        d1 = values @ u
        d2: Tensor = torch.linalg.vector_norm(values - d1 * u)
        on_direction = d2 <= 1e-12 * torch.linalg.vector_norm(values)  # d2 is rounding, not size
        return d1 if on_direction else d1 + self.theta * d2
