"""Krum and multi-Krum."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.checks import read_gramian


class Krum(GramianWeighting):
    """The mean of the gradients that are nearest to their neighbours; the others do not count.

    The score of a gradient is the sum of the squared distances to its n - f - 2 nearest others,
    for n gradients of which f may be faulty. The m lowest scores get the weight 1 / m.

    Blanchard, El Mhamdi, Guerraoui and Stainer, Machine Learning with Adversaries: Byzantine
    Tolerant Gradient Descent, NeurIPS 2017, section 4,
    https://papers.nips.cc/paper/2017/hash/f4b9ec30ad9f68f89b29639786cb62ef-Abstract.html. TorchJD
    adds up distances that are not squared.

    Called with a Gramian [task, task] of at least f + 3 tasks, returns weights [task].

    Args:
        n_byzantine: f, how many gradients may be faulty.
        n_selected: m, how many to take the mean of; 1 is Krum, more is multi-Krum.

    Example:
        >>> jacobian = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [-9.0, 3.0]])
        >>> Krum(n_byzantine=1)(jacobian @ jacobian.T)
        tensor([1., 0., 0., 0.])
    """

    def __init__(self, n_byzantine: int = 0, n_selected: int = 1) -> None:
        if n_byzantine < 0:
            raise ValueError(f"`n_byzantine` needs to be 0 or more: got {n_byzantine}.")
        if n_selected < 1:
            raise ValueError(f"`n_selected` needs to be 1 or more: got {n_selected}.")
        super().__init__()
        self.n_byzantine = n_byzantine
        self.n_selected = n_selected

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task] on the simplex."""
        G = read_gramian(gramian)
        fewest = max(self.n_byzantine + 3, self.n_selected)
        if len(G) < fewest:
            raise ValueError(
                f"`Krum(n_byzantine={self.n_byzantine}, n_selected={self.n_selected})` needs at "
                f"least {fewest} tasks: got {len(G)}."
            )
        squares = G.diagonal()
        distances = (squares[:, None] + squares - 2 * G).clamp(min=0)
        distances.fill_diagonal_(float("inf"))
        nearest = distances.topk(len(G) - self.n_byzantine - 2, largest=False).values
        chosen = nearest.sum(dim=1).argsort(stable=True)[: self.n_selected]
        weights = torch.zeros_like(gramian.diagonal())
        weights[chosen.to(weights.device)] = 1 / self.n_selected
        return weights
