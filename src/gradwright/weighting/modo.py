"""Multi-objective gradients by double sampling."""

from typing import ClassVar

import torch
from torch import Tensor

from gradwright.engine.weights.bases import CrossGramianWeighting, HeadBatches, HeadRule
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.share import put_share, share_of
from gradwright.weighting.solver import project_on_simplex


class MoDo(CrossGramianWeighting):
    """Moves the weights a little towards MGDA's in every step, without bias from the batches.

    λ ← Π(λ - γ (J₁ J₂ᵀ λ + ρ λ)) with Π the projection to the simplex. J₁ and J₂ come from two
    independent batches; the weights λ are for a third, or for the two again.

    Chen, Fernando, Ying and Chen, Three-Way Trade-Off in Multi-Objective Learning: Optimization,
    Generalization and Conflict-Avoidance, NeurIPS 2023 and JMLR 2024, equation 2.9,
    https://www.jmlr.org/papers/v25/23-1287.html. γ and ρ are those of the official code and
    TorchJD; LibMTL's γ is 0.001. LibMTL and TorchJD use a third batch.

    `gradwright.backward(losses, weighting=…, other=[losses_2, losses_3])` makes J₁ and J₂ of the
    two in `other`; with `other=[losses_2]` they are of both, whose mean is then trained on, as in
    the equation. The paper treats all parameters alike; its code, LibMTL and we leave the heads
    unweighted, and they are those of the batches that are trained on. LibMTL's get the mean of all
    three. TorchJD weights whole losses.

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
    libmtl_head_batches: ClassVar[HeadBatches] = "mean"

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
        weights = project_on_simplex(weights - self.gamma * (A @ weights + self.rho * weights))
        put_share(self, self.weights, weights)
        return weights.to(cross_gramian)
