"""The shortest vector in the hull of the gradients."""

import torch
from hypothesis import given
from torch import Tensor

from gradwright.weighting.solver import is_stationary, min_norm
from tests.reference.small_problems import shortest_in_hull
from tests.weighting.properties import gramian_of, independent_jacobians, jacobians


@given(jacobian=jacobians(max_tasks=5, scales=False))
def test_is_the_best_over_all_subsets(jacobian: Tensor) -> None:
    weights = min_norm(gramian_of(jacobian))

    expected = shortest_in_hull(jacobian)
    torch.testing.assert_close(weights @ jacobian, expected, rtol=1e-8, atol=1e-8)


@given(jacobian=independent_jacobians(max_tasks=40))
def test_is_optimal_at_every_scale(jacobian: Tensor) -> None:
    G = gramian_of(jacobian)
    w = min_norm(G)

    assert (w >= 0).all() and abs(float(w.sum()) - 1) < 1e-12
    scale = (w @ G.diagonal().sqrt()) * G.diagonal().sqrt()
    assert (G @ w >= w @ G @ w - 1e-12 * scale).all()


def test_a_gradient_of_zero_is_the_shortest() -> None:
    assert min_norm(torch.diag(torch.tensor([1.0, 0.0, 2.0, 0.0]).double())).tolist() == [
        0,
        0.5,
        0,
        0.5,
    ]


def test_stationary_is_a_mean_of_zero() -> None:
    one = torch.tensor([[3.0, 1.0]]).double()
    assert is_stationary(gramian_of(torch.cat([one, -2 * one])), 1e-12)
    assert not is_stationary(gramian_of(torch.cat([one, one])), 1e-12)
