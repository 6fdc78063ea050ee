"""Linear scalarization with a pull towards the preference's direction."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_not_negative, preference_vector
from gradwright.weighting.values import state_of, wide


class COSMOS(Scalarization):
    """The preferred mix of the losses, less the cosine between losses and preference.

    f(l) = r · l - λ cos(r, l).

    For the whole Pareto front, draw a new preference for every step and give it to the model as an
    input too: `weighting.preference.copy_(torch.distributions.Dirichlet(...).sample())`.

    Ruchte and Grabocka, Scalable Pareto Front Approximation for Deep Multi-Objective Learning, ICDM
    2021, https://arxiv.org/abs/2103.13392. As in TorchJD and the official code.

    Called with losses [task], returns weights [task], which can be negative.

    Args:
        preference: r, one number per task, 0 or more.
        penalty: λ; the paper uses 0.01 to 8.

    Example:
        >>> COSMOS([0.5, 0.5], penalty=1.0)(torch.tensor([1.0, 2.0]))
        tensor([0.3735, 0.5632])
    """

    preference: Tensor

    def __init__(self, preference: Sequence[float] | Tensor, penalty: float) -> None:
        check_not_negative("penalty", penalty)
        super().__init__()
        self.penalty = penalty
        self.register_buffer("preference", preference_vector("preference", preference))

    def total(self, losses: Tensor) -> Tensor:
        """r · l - λ cos(r, l); the cosine is 0 where all losses are."""
        r, values = state_of(self, self.preference, losses), wide(losses)
        mix = r @ values
        lengths = torch.linalg.vector_norm(r) * torch.linalg.vector_norm(values)
        return mix - self.penalty * mix / lengths if lengths > 0 else mix
