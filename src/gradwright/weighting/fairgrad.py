"""Fair resource allocation."""

from math import isfinite

from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_positive
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.solver import fair_share, precision


class FairGrad(GramianWeighting):
    """The update in a ball that is alpha-fair: the sum of g^(1-alpha) / (1-alpha) is largest.

    g_k = (G w)_k is what task k gains, and w > 0 solves G w = w^(-1/alpha). alpha = 1 is the Nash
    bargaining solution; towards 0 the weights become equal; a large alpha helps the worst-off task.

    Ban and Ji, Fair Resource Allocation in Multi-Task Learning, ICML 2024, equation 4,
    https://arxiv.org/abs/2402.15638. The official code multiplies the weights by the number of
    tasks; LibMTL, TorchJD and we do not. The peers use a general least-squares solver.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 has the
    weight 0. Where some mean of the gradients is 0 there is no solution; the weights are then
    large, but finite.

    Args:
        alpha: how fair to be: above 0. For 0, use `Sum`.

    Example:
        >>> import torch
        >>> FairGrad(alpha=2.0)(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.3969, 1.0000])
    """

    libmtl_heads = "weighted"

    def __init__(self, alpha: float = 1.0) -> None:
        check_positive("alpha", alpha)
        if not isfinite(alpha):
            raise ValueError(f"`alpha` needs to be finite: got {alpha}.")
        super().__init__()
        self.alpha = alpha

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task] > 0."""
        return fair_share(read_gramian(gramian), self.alpha, precision(gramian)).to(gramian)
