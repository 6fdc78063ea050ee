"""Geometric mean of the losses."""

from torch import Tensor

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.values import positive


class GeometricMean(Scalarization):
    """The geometric mean of the losses, which does not depend on their scales up to a factor.

    f(l) = (Π l_k)^(1/K) = exp(mean of log l_k), so w_k = f / (K l_k).

    `GLS` (geometric loss strategy) is another name. Losses need to be positive.

    Chennupati, Sistu, Yogamani and Rawashdeh, MultiNet++: Multi-Stream Feature Aggregation and
    Geometric Loss Strategy for Multi-Task Learning, CVPR workshops 2019,
    https://arxiv.org/abs/1904.08492. LibMTL multiplies the losses, which over- and underflows for
    many tasks; the logarithms here do not.

    Called with losses [task], returns weights [task].

    Example:
        >>> import torch
        >>> GeometricMean()(torch.tensor([1.0, 4.0]))
        tensor([1.0000, 0.2500])
    """

    def total(self, losses: Tensor) -> Tensor:
        """exp(mean of log l)."""
        return positive(self, losses).log().mean().exp().to(losses.dtype)


GLS = GeometricMean
