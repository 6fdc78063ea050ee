"""Gradients compared bit by bit."""

from itertools import pairwise

import torch
from torch import Tensor, nn


def gradients(*modules: nn.Module) -> list[Tensor | None]:
    """What the parameters' `.grad` hold; they are None afterwards."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    found = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    return found


def assert_same_bits(found: list[Tensor | None], expected: list[Tensor | None]) -> None:
    """Every gradient is there in both, and equal, or in neither; not all are missing."""
    assert any(gradient is not None for gradient in expected)
    for mine, other in zip(found, expected, strict=True):
        if mine is None or other is None:
            assert mine is other
        else:
            assert torch.equal(mine.to_dense(), other.to_dense())


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers, a tanh after each."""
    layers = [nn.Sequential(nn.Linear(*pair), nn.Tanh()) for pair in pairwise(widths)]
    return nn.Sequential(*layers)
