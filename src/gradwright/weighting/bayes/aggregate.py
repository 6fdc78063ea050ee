"""Bayesian uncertainty for gradient aggregation."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gradwright.weighting.arguments import check_positive
from gradwright.weighting.bayes.head import BayesHead, Moments


class BayesAgg(nn.Module):
    """The gradient at the features, in which each task counts by how sure its coordinates are.

    Every task's last layer is a Gaussian over its weights, so its gradient at the features has a
    mean μ and a variance σ² per example and coordinate; the update is Σ μ/σ² / Σ 1/σ², divided by
    the number of examples.

    This is no weighting of whole gradients and has its own call: `features.backward(update)`
    trains what made the features, and the heads are trained by their losses on
    `features.detach()`. **Call `fit` with all training examples once per epoch**, as the official
    code does: what it learns is the prior for the batches of that epoch.

    Achituve, Diamant, Netzer, Chechik and Fetaya, Bayesian Uncertainty for Gradient Aggregation in
    Multi-Task Learning, ICML 2024, https://arxiv.org/abs/2402.04005. As in the official code.

    Args:
        heads: what is believed about each task's last layer, in the order of the tasks.
        power: exponent of the variances; below 1 makes the tasks more equal.

    Example:
        >>> from gradwright.weighting.bayes.regression import RegressionHead
        >>> aggregate = BayesAgg([RegressionHead(2, n_outputs=1, prior_variance=1.0)])
        >>> features, targets = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0]])
        >>> aggregate(features, [targets], [nn.Linear(2, 1)])
        tensor([[0.5000, 0.0000]])
    """

    def __init__(self, heads: Sequence[BayesHead], power: float = 1.0) -> None:
        check_positive("power", power)
        super().__init__()
        self.heads = nn.ModuleList(heads)
        self.power = power

    def fit(self, features: Tensor, targets: Sequence[Tensor], layers: Sequence[nn.Linear]) -> None:
        """Make the priors from all training examples [example, feature]."""
        for head, target, layer in zip(self.heads, targets, layers, strict=True):
            assert isinstance(head, BayesHead)
            head.fit(features, target, layer)

    def forward(
        self, features: Tensor, targets: Sequence[Tensor], layers: Sequence[nn.Linear]
    ) -> Tensor:
        """The gradient [example, feature] for the features of a batch, of the mean loss."""
        moments = []
        for head, target, layer in zip(self.heads, targets, layers, strict=True):
            assert isinstance(head, BayesHead)
            moments.append(head.moments(features, target, layer))
        return precision_weighted(moments, self.power).to(features) / len(features)


def precision_weighted(moments: Sequence[Moments], power: float = 1.0) -> Tensor:
    """Σ μ/σ² / Σ 1/σ² over all outputs of all tasks: [example, feature]."""
    mean = torch.cat([each.mean for each in moments], dim=1)
    variance = torch.cat([each.variance for each in moments], dim=1)
    precision = variance.clamp(min=1e-8) ** -power
    return (precision * mean).sum(1) / precision.sum(1)
