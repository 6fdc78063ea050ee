"""Weightings and checks for the tests of the engine."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradwright.engine import GramianWeighting, JacobianWeighting, LossWeighting


def inverse_norms(gramian: Tensor) -> Tensor:
    """Weights that give all gradients one length; 1 where there is no gradient."""
    norms = gramian.diagonal().sqrt()
    return torch.where(norms > 0, 1 / norms, 1.0)


def squashed(jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
    """Σ over tasks of loss × tanh(row): no combination of rows gives it."""
    return [torch.einsum("t,t...->...", losses.to(rows), rows.tanh()) for rows in jacobian]


class InverseNorms(GramianWeighting):
    def forward(self, gramian: Tensor) -> Tensor:
        return inverse_norms(gramian)


class Squashed(JacobianWeighting):
    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        return squashed(jacobian, losses)


class Counting(LossWeighting):
    """Weights 1, 2, 3 and so on."""

    def forward(self, losses: Tensor) -> Tensor:
        return torch.arange(1.0, len(losses) + 1)


def assert_gradients(
    leaves: Sequence[Tensor], expected: Sequence[Tensor | None], **near: Any
) -> None:
    """Each leaf's `.grad` is the expected one, and None where that is."""
    for leaf, wanted in zip(leaves, expected, strict=True):
        if wanted is None:
            assert leaf.grad is None
        else:
            assert leaf.grad is not None
            torch.testing.assert_close(leaf.grad.to_dense(), wanted.to(leaf), **near)
