"""G w = w^(-1/alpha)."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradwright.weighting.solver import fair_share, is_stationary
from tests.reference.small_problems import fair_weights
from tests.weighting.properties import gramian_of, independent_jacobians, jacobians

ALPHAS = [0.1, 0.5, 1.0, 2.0, 10.0]


@settings(max_examples=25)
@given(jacobian=independent_jacobians(max_tasks=4), alpha=st.sampled_from(ALPHAS))
def test_is_what_one_weight_after_the_other_gives(jacobian: Tensor, alpha: float) -> None:
    G = gramian_of(jacobian)
    lengths = G.diagonal().sqrt()
    assume((G / lengths.outer(lengths) - torch.eye(len(G))).abs().max() < 0.7)  # else too slow

    expected = fair_weights(G, alpha, rounds=100)
    torch.testing.assert_close(fair_share(G, alpha), expected, rtol=1e-8, atol=0)


@given(jacobian=independent_jacobians(max_tasks=40), alpha=st.sampled_from(ALPHAS))
def test_solves_the_equation_at_every_scale(jacobian: Tensor, alpha: float) -> None:
    G = gramian_of(jacobian)
    w = fair_share(G, alpha)

    assert (w > 0).all()
    wanted = w ** (-1 / alpha)
    rounding = 1e-14 * (G.abs() @ w)  # more than `wanted` where alpha is small and gradients differ
    assert ((G @ w - wanted).abs() <= 1e-10 * wanted + rounding).all()


@given(jacobian=jacobians(scales=False))
def test_gradients_may_depend_on_each_other(jacobian: Tensor) -> None:
    G = gramian_of(jacobian)
    assume((G.diagonal() > 0).all())
    assume(not is_stationary(G, 1e-6))
    w = fair_share(G)

    torch.testing.assert_close(w * (G @ w), torch.ones_like(w), rtol=0, atol=1e-8)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_opposite_gradients_stop_at_a_limit(alpha: float) -> None:
    opposite = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double()
    w = fair_share(opposite, alpha)

    assert w.isfinite().all()
    torch.testing.assert_close(w[0], w[1])


def test_a_gradient_of_zero_does_not_bargain() -> None:
    G = torch.diag(torch.tensor([4.0, 0.0, 1.0]).double())
    torch.testing.assert_close(fair_share(G), torch.tensor([0.5, 0.0, 1.0]).double())
    assert fair_share(torch.zeros(2, 2).double()).tolist() == [0, 0]
