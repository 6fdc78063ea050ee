"""Sum of the losses."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting


class Sum(LossWeighting):
    """Every loss counts once: the plain sum, w = 1.

    This is what equal weighting (EW) means in most papers and in LibMTL, whose documentation says
    1 / number of tasks but whose code sums; `EW` is another name for this class. See `Mean` for
    the sum divided by the number of tasks.

    Kurin, De Palma, Kostrikov, Whiteson and Kumar, In Defense of the Unitary Scalarization for Deep
    Multi-Task Learning, NeurIPS 2022, https://arxiv.org/abs/2201.04122: with the usual
    regularization it is as good as methods that cost much more.

    Called with losses [task], returns weights [task].

    Example:
        >>> Sum()(torch.tensor([0.5, 2.0]))
        tensor([1., 1.])
    """

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task], all 1."""
        return torch.ones_like(losses)


EW = Sum
