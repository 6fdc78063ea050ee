"""Smooth Tchebycheff scalarization."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_positive, finite_vector, preference_vector
from gradwright.weighting.values import state_of, wide


class STCH(Scalarization):
    """A smooth maximum of the weighted distances to an ideal point: the worst task counts most.

    f(l) = μ log Σ exp(λ_k (l_k - z_k) / μ), so w = λ · softmax(λ (l - z) / μ).

    Lin, Zhang, Yang, Liu, Wang and Zhang, Smooth Tchebycheff Scalarization for Multi-Objective
    Optimization, ICML 2024, https://arxiv.org/abs/2402.19078. This is the paper's
    formula, as TorchJD has it. What its multi-task experiments and LibMTL run, on logarithms after
    a warm-up, is `NadirSTCH`.

    Called with losses [task], returns weights [task] ≥ 0.

    Args:
        mu: μ, the smoothing; smaller is closer to the maximum.
        preference: λ, one positive number per task; by default 1 / number of tasks in the step.
        ideal: z, the best value each loss could have; by default 0.

    Example:
        >>> STCH(mu=1.0)(torch.tensor([1.0, 3.0]))
        tensor([0.1345, 0.3655])
    """

    preference: Tensor | None
    ideal: Tensor | None

    def __init__(
        self,
        mu: float = 1.0,
        preference: Sequence[float] | Tensor | None = None,
        ideal: Sequence[float] | Tensor | None = None,
    ) -> None:
        check_positive("mu", mu)
        super().__init__()
        self.mu = mu
        self.register_buffer(
            "preference",
            None if preference is None else preference_vector("preference", preference),
        )
        self.register_buffer("ideal", None if ideal is None else finite_vector("ideal", ideal))

    def total(self, losses: Tensor) -> Tensor:
        """μ log Σ exp(λ (l - z) / μ)."""
        distances = wide(losses)
        if self.ideal is not None:
            distances = distances - state_of(self, self.ideal, losses)
        if self.preference is None:
            distances = distances / len(losses)
        else:
            distances = distances * state_of(self, self.preference, losses)
        return self.mu * torch.logsumexp(distances / self.mu, dim=0)
