"""What is believed about the last layer of a task."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Moments(NamedTuple):
    """Mean and variance of the gradient at the features: [example, output, feature] each."""

    mean: Tensor
    variance: Tensor


class BayesHead(nn.Module, ABC):
    """A last layer as a Gaussian over its weights: `mean` and `precision`, a prior for batches.

    Before `fit` the prior is N(0, `prior_variance` · I).
    """

    mean: Tensor
    precision: Tensor

    @abstractmethod
    def fit(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> None:
        """Make the prior from all training examples [example, feature]: once per epoch."""

    @abstractmethod
    def moments(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> Moments:
        """How the loss's gradient at the features of a batch is distributed."""


def gaussian_inverse(precision: Tensor) -> Tensor:
    """The inverse [..., n, n] of a positive definite matrix."""
    return torch.cholesky_inverse(torch.linalg.cholesky(precision))


def with_ones(features: Tensor) -> Tensor:
    """The features and a 1, for the bias: [example, feature + 1], in float64."""
    values = features.detach().double()
    return torch.cat([values, torch.ones_like(values[:, :1])], dim=1)
