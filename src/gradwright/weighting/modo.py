"""Multi-objective gradients by double sampling."""

from typing import ClassVar

import torch
from torch import Tensor

from gradwright.engine.weighting import CrossGramianWeighting, HeadRule
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.share import nearest_share, put_share, share_of


class MoDo(CrossGramianWeighting):
    """Moves the weights a little towards MGDA's in every step, without bias from the batches.

    λ ← Π(λ - γ (J₁ J₂ᵀ λ + ρ λ)) with Π the projection to the simplex. J₁ and J₂ come from two
    independent batches; the weights λ are for a third, or for the two again.

    Chen, Fernando, Ying and Chen, Three-Way Trade-Off in Multi-Objective Learning: Optimization,
    Generalization and Conflict-Avoidance, NeurIPS 2023 and JMLR 2024, equation 2.9,
    https://www.jmlr.org/papers/v25/23-1287.html. γ and ρ are those of the official code and
    TorchJD; LibMTL's γ is 0.001. LibMTL and TorchJD use a third batch.

    Called with J₁ J₂ᵀ [task, task], returns weights [task] ≥ 0 with sum 1, kept as `weights`.

    Args:
        n_tasks: number of tasks.
        gamma: γ, how fast the weights move.
        rho: ρ, pull towards equal weights.

    Example:
        >>> MoDo(2)(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.4250, 0.5750])
    """

    torchjd_heads: ClassVar[HeadRule] = "weighted"

    weights: Tensor

    def __init__(self, n_tasks: int, gamma: float = 0.1, rho: float = 0.1) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("gamma", gamma)
        check_not_negative("rho", rho)
        super().__init__()
        self.gamma = gamma
        self.rho = rho
        self.register_buffer("weights", torch.full((n_tasks,), 1 / n_tasks))

    def forward(self, cross_gramian: Tensor) -> Tensor:
        """Weights [task] for the third batch."""
        A = read_gramian(cross_gramian)
        weights = share_of(self, self.weights, A)
        weights = nearest_share(weights - self.gamma * (A @ weights + self.rho * weights))
        put_share(self, self.weights, weights)
        return weights.to(cross_gramian)
