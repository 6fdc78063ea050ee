"""Conflict-free inverse gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.checks import preference_of, read_gramian, read_preference
from gradwright.weighting.solver import precision, spectrum, unit_diagonal


class ConFIG(GramianWeighting):
    """The update that has the same cosine with every gradient, as long as all of them agree on.

    With U the gradients of length 1 and U⁺ the pseudo-inverse, u = U⁺ p of length 1, for the
    preference p, and the update is (Σ g_k·u) u. With C = U Uᵀ: U⁺ p = Uᵀ c, c = C⁺ p.

    Liu, Chu and Thuerey, ConFIG: Towards Conflict-free Training of Physics Informed Neural
    Networks, ICLR 2025, equation 2, https://arxiv.org/abs/2408.11104.

    Called with a Gramian [task, task], returns weights [task]. Three and more tasks may get
    weights below 0, as published. A task whose gradient is 0 has the weight 0.

    Args:
        preference: the cosines with the gradients, up to a factor; equal if left out.

    Example:
        >>> ConFIG()(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.7500, 1.5000])
    """

    def __init__(self, preference: Sequence[float] | Tensor | None = None) -> None:
        super().__init__()
        self.preference = read_preference(preference)

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task]."""
        G = read_gramian(gramian)
        p = preference_of(self, self.preference, len(G), 1.0)
        cosines, lengths = unit_diagonal(G)
        cosines = cosines * (G.diagonal() > 0)
        direction = spectrum(cosines, precision(gramian)).power(-1, p)
        squared = direction @ cosines @ direction
        if squared <= 0:
            return torch.zeros_like(gramian.diagonal())
        length = lengths @ (cosines @ direction)
        return (length / squared * direction / lengths).to(gramian)
