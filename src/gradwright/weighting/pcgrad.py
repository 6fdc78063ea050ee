"""Projecting conflicting gradients."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.visiting import visiting_orders


class PCGrad(GramianWeighting):
    """Each gradient loses its part against the others, one after the other; then they are summed.

    For each task i, starting at g = g_i, and each other task j in random order:
    if g·g_j < 0, then g ← g - (g·g_j / ‖g_j‖²) g_j. With g = Jᵀ c, only the row i of coefficients
    c changes, and g·g_j = (G c)_j; the weights are the sum of the rows.

    Yu, Kumar, Gupta, Levine, Hausman and Finn, Gradient Surgery for Multi-Task Learning, NeurIPS
    2020, algorithm 1, https://arxiv.org/abs/2001.06782. The order is drawn from torch's global
    generator as TorchJD draws it. LibMTL and nash-mtl also project g on g_i itself, which the
    paper leaves out; so do we.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 conflicts
    with none and has the weight 1.

    Example:
        >>> PCGrad()(torch.tensor([[1.0, -0.5], [-0.5, 1.0]]))
        tensor([1.5000, 1.5000])
    """

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task], all tasks i side by side."""
        G = read_gramian(gramian)
        squares = G.diagonal().masked_fill(G.diagonal() <= 0, 1)
        tasks = torch.arange(len(G))
        coefficients = torch.eye(len(G), dtype=G.dtype)  # [i, task]
        products = G.clone()  # of g with all gradients [i, task]
        for j in visiting_orders(len(G)).T:
            against = products[tasks, j].clamp(max=0) / squares[j]
            coefficients[tasks, j] -= against
            products -= against[:, None] * G[j]
        return coefficients.sum(dim=0).to(gramian)
