"""The part of a Gramian that is more than rounding."""

import torch
from hypothesis import given
from torch import Tensor

from gradwright.weighting.solver import precision, spectrum, unit_diagonal
from tests.weighting.properties import gramian_of, jacobians


@given(jacobian=jacobians(scales=False))
def test_the_power_minus_one_is_the_pseudo_inverse(jacobian: Tensor) -> None:
    G = gramian_of(jacobian)
    found = spectrum(G, 1e-12)
    vector = torch.arange(1.0, len(G) + 1).double()

    assert len(found.values) == torch.linalg.matrix_rank(jacobian)
    expected = torch.linalg.pinv(G, rtol=1e-12, hermitian=True) @ vector
    torch.testing.assert_close(found.power(-1, vector), expected, rtol=1e-8, atol=1e-10)


def test_nothing_is_left_of_zero() -> None:
    found = spectrum(torch.zeros(3, 3).double(), 1e-12)
    assert found.power(-0.5, torch.ones(3).double()).tolist() == [0, 0, 0]


@given(jacobian=jacobians())
def test_cosines_and_lengths_make_the_gramian(jacobian: Tensor) -> None:
    G = gramian_of(jacobian)
    cosines, lengths = unit_diagonal(G)

    assert (cosines.diagonal() == 1).all()
    assert (cosines.abs() <= 1).all()
    product = cosines * lengths.outer(lengths)
    torch.testing.assert_close(product * (G.diagonal() > 0), G, rtol=1e-12, atol=1e-12)


def test_impossible_cosines_are_mended() -> None:
    """Each two of three gradients cannot be opposite."""
    impossible = 2 * torch.eye(3).double() - 1
    cosines, _ = unit_diagonal(impossible)
    assert torch.linalg.eigvalsh(cosines).min() >= -1e-10


def test_float32_is_less_precise() -> None:
    assert precision(torch.eye(3).double()) == 1e-12
    assert precision(torch.eye(3)) > 1e-6
