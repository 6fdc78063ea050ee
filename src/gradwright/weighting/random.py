"""Random loss weighting."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting


class Random(LossWeighting):
    """New random weights in every step, positive and with sum 1: w = softmax(z), z ~ N(0, I).

    Draws from torch's global generator, so `torch.manual_seed` decides. `RLW` is another name.

    Lin, Ye, Zhang and Tsang, Reasonable Effectiveness of Random Weighting: A Litmus Test for
    Multi-Task Learning, TMLR 2022, algorithm 2, https://arxiv.org/abs/2111.10603. TorchJD and
    LibMTL's default distribution are the same; the code of nash-mtl multiplies by the number of
    tasks.

    Called with losses [task], returns weights [task].

    Example:
        >>> _ = torch.manual_seed(0)
        >>> Random()(torch.tensor([0.5, 2.0, 1.0])).sum()
        tensor(1.0000)
    """

    def forward(self, losses: Tensor) -> Tensor:
        """Fresh weights [task] on the simplex."""
        return torch.softmax(torch.randn_like(losses), dim=0)


RLW = Random
