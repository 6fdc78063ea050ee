"""Fixed weights."""

from collections.abc import Sequence

from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.arguments import finite_vector
from gradwright.weighting.values import state_of


class Constant(LossWeighting):
    """Weights chosen beforehand, the same in every step.

    The baseline that tuned weights set; also called linear scalarization, for which
    `LinearScalarization` is another name. Tasks missing from a step leave the others' weights as
    they are.

    Xin, Ghorbani, Gilmer, Garg and Firat, Do Current Multi-Task Optimization Methods in Deep
    Learning Even Help?, NeurIPS 2022, https://arxiv.org/abs/2209.11379: tuned, it reaches what
    methods that cost much more reach.

    Called with losses [task], returns weights [task].

    Args:
        weights: one number per task; any sign and any sum.

    Example:
        >>> import torch
        >>> Constant([1.0, 0.1])(torch.tensor([0.5, 20.0]))
        tensor([1.0000, 0.1000])
    """

    weights: Tensor

    def __init__(self, weights: Sequence[float] | Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", finite_vector("weights", weights))

    def forward(self, losses: Tensor) -> Tensor:
        """The weights [task] that were given."""
        return state_of(self, self.weights, losses).to(losses.dtype)


LinearScalarization = Constant
