"""Squared losses, for which all is exact."""

import torch
from torch import Tensor, nn

from gradwright.weighting.arguments import check_positive
from gradwright.weighting.bayes.head import BayesHead, Moments, gaussian_inverse


class RegressionHead(BayesHead):
    """Outputs h · w + noise with variance 1, loss (h · w - y)², and w as Bayes' rule says.

    The gradient at the features is 2 (h · w - y) w: with m = h · μ - y, s = hᵀ Σ h and c = Σ h,
    its mean is 2 (m μ + c), and its variance 4 (m² Σ_dd + μ_d² s + 2 m μ_d c_d + s Σ_dd + c_d²).

    The layer's own weights are not used, nor its bias, as in the official code.

    Args:
        n_features: length of the features.
        n_outputs: number of outputs, each a task of its own.
        prior_variance: variance of the weights before any data.
    """

    def __init__(self, n_features: int, n_outputs: int, prior_variance: float = 1e-3) -> None:
        check_positive("prior_variance", prior_variance)
        super().__init__()
        self.prior_variance = prior_variance
        self.register_buffer("mean", torch.zeros(n_outputs, n_features))
        self.register_buffer("precision", torch.eye(n_features) / prior_variance)

    def fit(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> None:
        """Make the prior from all training examples; `targets` is [example, output]."""
        precision = torch.eye(features.shape[1]).to(features) / self.prior_variance
        mean, precision = _posterior(torch.zeros_like(self.mean), precision, features, targets)
        self.mean.copy_(mean)
        self.precision.copy_(precision)

    def moments(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> Moments:
        """Mean and variance of 2 (h · w - y) w; `targets` is [example, output]."""
        mu, precision = _posterior(self.mean, self.precision, features, targets)
        sigma = gaussian_inverse(precision)
        h = features.detach().double()
        c = (h @ sigma)[:, None]  # [example, 1, feature]
        s = (h[:, None] * c).sum(2, keepdim=True)
        m = (h @ mu.T - targets)[:, :, None]
        own = sigma.diagonal()
        variance = m**2 * own + mu**2 * s + 2 * m * mu * c + s * own + c**2
        return Moments(2 * (m * mu + c), 4 * variance)


def _posterior(
    mean: Tensor, precision: Tensor, features: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean [output, feature] and precision [feature, feature] after these examples."""
    h, y = features.detach().double(), targets.double()
    prior = precision.to(h)
    after = prior + h.T @ h
    pull = mean.to(h) @ prior + y.T @ h
    return torch.cholesky_solve(pull.T, torch.linalg.cholesky(after)).T, after
