"""Logistic and softmax losses, for which the posterior is a Gaussian near the layer's weights."""

import torch
from torch import Tensor, nn

from gradwright.weighting.arguments import check_positive
from gradwright.weighting.bayes.head import BayesHead, Moments, gaussian_inverse, with_ones


class BinaryHead(BayesHead):
    """Binary cross entropy of `n_outputs` logits, each a task of its own.

    Weights and bias W of an output are N(W - Λ⁻¹ (∇loss + P (W - prior)), Λ⁻¹), with
    Λ = P + Σ p (1 - p) x xᵀ: one Newton step, with the prior's precision P. The gradient's mean
    and variance come from `samples` draws with torch's global generator.

    Args:
        n_features: length of the features.
        n_outputs: number of logits.
        prior_variance: variance of the weights before any data.
        samples: number of draws.
    """

    def __init__(
        self, n_features: int, n_outputs: int, prior_variance: float = 1e-3, samples: int = 512
    ) -> None:
        check_positive("prior_variance", prior_variance)
        check_positive("samples", samples)
        super().__init__()
        self.prior_variance = prior_variance
        self.samples = samples
        n = n_features + 1
        self.register_buffer("mean", torch.zeros(n_outputs, n))
        self.register_buffer("precision", torch.eye(n).repeat(n_outputs, 1, 1) / prior_variance)

    def fit(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> None:
        """Make the prior from all training examples; `targets` is [example, output], 0 or 1."""
        start = torch.eye(self.mean.shape[1]).expand_as(self.precision) / self.prior_variance
        mean, precision = _binary(torch.zeros_like(self.mean), start, features, targets, layer)
        self.mean.copy_(mean)
        self.precision.copy_(precision)

    def moments(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> Moments:
        """Mean and variance of (sigmoid(h · w + b) - y) w over the draws."""
        mean, precision = _binary(self.mean, self.precision, features, targets, layer)
        draws = _draws(mean, precision, self.samples)  # [sample, output, feature + 1]
        off = torch.einsum("bp,sop->sbo", with_ones(features), draws).sigmoid() - targets
        w = draws[..., :-1]
        first = torch.einsum("sod,sbo->bod", w, off) / self.samples
        second = torch.einsum("sod,sbo->bod", w**2, off**2) / self.samples
        return Moments(first, second - first**2)


class ClassHead(BayesHead):
    """Cross entropy of `n_classes` logits, together one task.

    As `BinaryHead`, with Λ = P + Σ (diag p - p pᵀ) ⊗ x xᵀ over all weights and biases at once: a
    matrix of (classes · (features + 1))² numbers.

    Args:
        n_features: length of the features.
        n_classes: number of logits.
        prior_variance: variance of the weights before any data.
        samples: number of draws.
    """

    def __init__(
        self, n_features: int, n_classes: int, prior_variance: float = 1e-3, samples: int = 512
    ) -> None:
        check_positive("prior_variance", prior_variance)
        check_positive("samples", samples)
        super().__init__()
        self.prior_variance = prior_variance
        self.samples = samples
        self.n_classes = n_classes
        n = n_classes * (n_features + 1)
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("precision", torch.eye(n) / prior_variance)

    def fit(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> None:
        """Make the prior from all training examples; `targets` is [example], class numbers."""
        start = torch.eye(len(self.mean)) / self.prior_variance
        mean, precision = _classes(torch.zeros_like(self.mean), start, features, targets, layer)
        self.mean.copy_(mean)
        self.precision.copy_(precision)

    def moments(self, features: Tensor, targets: Tensor, layer: nn.Linear) -> Moments:
        """Mean and variance of Wᵀ (softmax(W h + b) - y) over the draws."""
        mean, precision = _classes(self.mean, self.precision, features, targets, layer)
        draws = _draws(mean, precision, self.samples).reshape(self.samples, self.n_classes, -1)
        logits = torch.einsum("bp,scp->sbc", with_ones(features), draws)
        off = logits.softmax(-1) - nn.functional.one_hot(targets, self.n_classes)
        gradient = torch.einsum("scd,sbc->sbd", draws[..., :-1], off)
        mean = gradient.mean(0)
        return Moments(mean[:, None], gradient.var(0, correction=0)[:, None])


def _binary(
    prior: Tensor, precision: Tensor, features: Tensor, targets: Tensor, layer: nn.Linear
) -> tuple[Tensor, Tensor]:
    """Mean [output, n] and precision [output, n, n] after these examples."""
    x, W = with_ones(features), _weights_of(layer)
    P = precision.to(x)
    p = (x @ W.T).sigmoid()
    after = P + torch.einsum("bo,bp,bq->opq", p * (1 - p), x, x)
    slope = (p - targets).T @ x + torch.einsum("opq,oq->op", P, W - prior.to(x))
    return W - torch.linalg.solve(after, slope), after


def _classes(
    prior: Tensor, precision: Tensor, features: Tensor, targets: Tensor, layer: nn.Linear
) -> tuple[Tensor, Tensor]:
    """Mean [n] and precision [n, n] after these examples, n = classes · (features + 1)."""
    x, W = with_ones(features), _weights_of(layer)
    P = precision.to(x)
    p = (x @ W.T).softmax(1)
    curvature = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    after = P + torch.einsum("bck,bp,bq->cpkq", curvature, x, x).reshape(P.shape)
    off = p - nn.functional.one_hot(targets, len(W))
    slope = (off.T @ x).flatten() + P @ (W.flatten() - prior.to(x))
    return W.flatten() - torch.linalg.solve(after, slope), after


def _draws(mean: Tensor, precision: Tensor, samples: int) -> Tensor:
    root = torch.linalg.cholesky(gaussian_inverse(precision))
    noise = torch.randn(samples, *mean.shape, dtype=mean.dtype, device=mean.device)
    return mean + torch.einsum("...pq,s...q->s...p", root, noise)


def _weights_of(layer: nn.Linear) -> Tensor:
    """Weights and bias of the layer, 0 where it has none: [output, feature + 1]."""
    weight = layer.weight.detach().double()
    bias = weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach().double()
    return torch.cat([weight, bias[:, None]], dim=1)
