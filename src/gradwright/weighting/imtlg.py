"""Impartial multi-task learning, its part on gradients."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.solver import precision, spectrum


class IMTLG(GramianWeighting):
    """The update whose projection on every gradient is equally long.

    w ∝ G⁺ d with Σ w = 1, for the lengths d_k = √G_kk and the pseudo-inverse G⁺.

    Liu, Li, Kuang, Xue, Chen, Yang, Liao and Zhang, Towards Impartial Multi-task Learning, ICLR
    2021, https://openreview.net/forum?id=IMPnRXEWpvr. The pseudo-inverse is for
    gradients that depend on each other, as in Quinton and Rey, Jacobian Descent for
    Multi-Objective Optimization, 2024, https://arxiv.org/abs/2406.16232, and in TorchJD; LibMTL
    and nash-mtl divide by 0 there. For the part on losses, see `IMTLL`.

    Called with a Gramian [task, task], returns weights [task]. Three and more tasks may get
    weights below 0, as published. A task whose gradient is 0 has the weight 0, and all have where
    their sum would be 0.

    Example:
        >>> IMTLG()(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.3333, 0.6667])
    """

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task] of sum 1."""
        G = read_gramian(gramian)
        rounding = precision(gramian)
        lengths = G.diagonal().clamp(min=0).sqrt()
        direction = spectrum(G, rounding).power(-1, lengths)
        total = direction.sum()
        if total.abs() <= rounding * direction.abs().sum():
            return torch.zeros_like(gramian.diagonal())
        return (direction / total).to(gramian)
