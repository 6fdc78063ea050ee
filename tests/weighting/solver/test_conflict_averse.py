"""The update near the mean gradient that helps the worst-off task most."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradwright.weighting.solver import conflict_averse, is_stationary
from tests.reference.small_problems import lowest_on_simplex, nearest_without_conflict
from tests.weighting.properties import gramian_of, independent_jacobians, jacobians


def objective(G: Tensor, c: float, w: Tensor) -> Tensor:
    """wᵀ G b + c ‖g₀‖ √(wᵀ G w), for b = 1 / task."""
    return w @ G.mean(dim=1) + c * G.mean().sqrt() * (w @ G @ w).clamp(min=0).sqrt()


@settings(max_examples=10)
@given(jacobian=jacobians(2, 3, scales=False), c=st.sampled_from([0.1, 0.5, 0.9, 2.0]))
def test_is_the_lowest_on_the_simplex(jacobian: Tensor, c: float) -> None:
    G = gramian_of(jacobian)
    z = conflict_averse(G, c)
    assume(float(z @ G @ z) > 0.999 * c**2 * float(G.mean()) > 0)  # else see below

    found = float(objective(G, c, z / z.sum()))
    expected = lowest_on_simplex(lambda w: float(objective(G, c, w)), len(G))
    assert found == pytest.approx(expected, abs=1e-8, rel=1e-8)


@given(jacobian=independent_jacobians(max_tasks=40), c=st.sampled_from([0.1, 0.5, 0.9, 2.0]))
def test_is_optimal_at_every_scale(jacobian: Tensor, c: float) -> None:
    """Every task in use is helped as much as the worst-off, and the whole radius is used."""
    G = gramian_of(jacobian)
    z = conflict_averse(G, c)

    helped = G.mean(dim=1) + G @ z
    scale = G.diagonal().sqrt() * (G.diagonal().sqrt() @ (z + 1 / len(G)))
    assert (z >= 0).all()
    torch.testing.assert_close(z @ G @ z, c**2 * G.mean(), rtol=1e-10, atol=0)
    assert (helped >= helped.min() - 1e-12 * scale).all()
    assert ((helped - helped.min()) * (z > 0) <= 1e-11 * scale).all()


@settings(max_examples=30)
@given(jacobian=jacobians(2, 4, scales=False), c=st.sampled_from([0.5, 2.0]))
def test_where_stationary_is_the_nearest_to_the_mean_or_on_the_way(
    jacobian: Tensor, c: float
) -> None:
    """It is never further from the mean than its radius: with c below 1 it does not stop there."""
    G, mean = gramian_of(jacobian), jacobian.mean(dim=0)
    assume(is_stationary(G, 1e-12))
    step = conflict_averse(G, c) @ jacobian

    nearest = nearest_without_conflict(jacobian, mean) - mean
    radius = c * mean.norm()
    if nearest.norm() <= radius:
        torch.testing.assert_close(step, nearest, rtol=1e-8, atol=1e-8)
    else:
        torch.testing.assert_close(step.norm(), radius, rtol=1e-10, atol=1e-10)


def test_gradients_that_pull_against_each_other() -> None:
    """The mean of 3 and -1 is 1; the worst-off task wants it lower, by at most c."""
    z = conflict_averse(torch.tensor([[9.0, -3.0], [-3.0, 1.0]]).double(), 0.5)

    torch.testing.assert_close(z, torch.tensor([0.0, 0.5]).double())


def test_no_radius_is_the_mean() -> None:
    assert conflict_averse(torch.eye(3).double(), 0.0).tolist() == [0, 0, 0]
