"""Mean of the losses."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting


class Mean(LossWeighting):
    """Every loss counts the same, and the weights sum to 1: w = 1 / number of tasks in the step.

    Called with losses [task], returns weights [task].

    Example:
        >>> Mean()(torch.tensor([0.5, 2.0]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task], all 1 / number of losses."""
        return torch.full_like(losses, 1 / len(losses))
