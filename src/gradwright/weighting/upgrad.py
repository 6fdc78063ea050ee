"""Jacobian descent with unconflicting projections of gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_not_negative
from gradwright.weighting.checks import preference_of, read_gramian, read_preference
from gradwright.weighting.solver import project_on_dual_cone


class UPGrad(GramianWeighting):
    """Each gradient is moved to the nearest vector that no task disagrees with; then the mean.

    For each task i, v_i = argmin vᵀ G v over v ≥ p_i e_i, for the preference p; w = Σ v_i.
    Then (G w)_k ≥ 0 for all k, and making one gradient longer helps its task proportionally.

    Quinton and Rey, Jacobian Descent for Multi-Objective Optimization, 2024,
    proposition 1, https://arxiv.org/abs/2406.16232. TorchJD and LibMTL add 0.0001 of the trace to
    the diagonal of G (`ridge=1e-4`), which lets tasks with short gradients be disagreed with, and
    TorchJD takes gradients whose squares sum to less than 0.0001 for 0; by default we do neither.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 keeps
    its preference.

    Args:
        preference: how much each task counts; equal shares of 1 if left out.
        ridge: added to the diagonal of G, as a fraction of its trace.

    Example:
        >>> UPGrad()(torch.tensor([[1.0, -0.5], [-0.5, 1.0]]))
        tensor([0.7500, 0.7500])
    """

    def __init__(
        self, preference: Sequence[float] | Tensor | None = None, ridge: float = 0.0
    ) -> None:
        check_not_negative("ridge", ridge)
        super().__init__()
        self.ridge = ridge
        self.preference = read_preference(preference)

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task], each at least its preference."""
        G = read_gramian(gramian)
        p = preference_of(self, self.preference, len(G), 1 / len(G))
        G = G + self.ridge * G.trace() * torch.eye(len(G), dtype=G.dtype)
        return project_on_dual_cone(G, p.diag()).sum(dim=0).to(gramian)
