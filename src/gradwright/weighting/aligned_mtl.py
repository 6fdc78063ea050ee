"""Independent component alignment."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.checks import preference_of, read_gramian, read_preference
from gradwright.weighting.solver import precision, spectrum

Scale = Literal["min", "median", "rmse"]


class AlignedMTL(GramianWeighting):
    """Gradients are replaced by the nearest ones that are orthogonal and of equal length.

    With G = V Λ Vᵀ over the eigenvalues above rounding, B = √σ V Λ^(-1/2) Vᵀ, and w = B p for the
    preference p. The length √σ is that of the smallest eigenvalue, the median, or their mean.

    Senushkin, Patakin, Kuznetsov and Konushin, Independent Component Alignment for Multi-Task
    Learning, CVPR 2023, algorithm 1, https://arxiv.org/abs/2305.19000. The preference is 1 / task
    as in TorchJD; LibMTL has 1. The mean of the eigenvalues ("rmse") is an option of the official
    code.

    Called with a Gramian [task, task], returns weights [task]; the preference if all gradients
    are 0.

    Args:
        preference: how much each task counts; equal shares of 1 if left out.
        scale: which eigenvalue gives the common length.

    Example:
        >>> import torch
        >>> AlignedMTL()(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.2500, 0.5000])
    """

    def __init__(
        self, preference: Sequence[float] | Tensor | None = None, scale: Scale = "min"
    ) -> None:
        if scale not in ("min", "median", "rmse"):
            raise ValueError(f"`scale` needs to be 'min', 'median' or 'rmse': got {scale!r}.")
        super().__init__()
        self.scale = scale
        self.preference = read_preference(preference)

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task]."""
        G = read_gramian(gramian)
        p = preference_of(self, self.preference, len(G), 1 / len(G))
        found = spectrum(G, precision(gramian))
        if not len(found.values):
            return p.to(gramian)
        square = {
            "min": found.values[0],
            "median": found.values.median(),
            "rmse": found.values.mean(),
        }[self.scale]
        return (square.sqrt() * found.power(-0.5, p)).to(gramian)
