"""Gradient episodic memory, as a method for many tasks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_not_negative
from gradwright.weighting.checks import preference_of, read_gramian, read_preference
from gradwright.weighting.solver import project_on_dual_cone


class DualProj(GramianWeighting):
    """The mean gradient is moved to the nearest vector that no task disagrees with.

    w = argmin vᵀ G v over v ≥ p, for the preference p. Then (G w)_k ≥ 0 for all k.

    Lopez-Paz and Ranzato, Gradient Episodic Memory for Continual Learning, NeurIPS 2017, equation
    11, https://arxiv.org/abs/1706.08840; for several tasks and with this name in Quinton and Rey,
    Jacobian Descent for Multi-Objective Optimization, 2024, https://arxiv.org/abs/2406.16232. For
    TorchJD's result, set `ridge=1e-4`.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 keeps
    its preference.

    Args:
        preference: how much each task counts; equal shares of 1 if left out.
        ridge: added to the diagonal of G, as a fraction of its trace.

    Example:
        >>> DualProj()(torch.tensor([[1.0, -2.0], [-2.0, 9.0]]))
        tensor([1.0000, 0.5000])
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
        return project_on_dual_cone(G, p[None])[0].to(gramian)
