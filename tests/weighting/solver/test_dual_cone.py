"""The nearest vector that disagrees with no gradient."""

import torch
from hypothesis import given
from torch import Tensor

from gradwright.weighting.solver import project_on_dual_cone
from tests.reference.small_problems import nearest_without_conflict
from tests.weighting.properties import gramian_of, independent_jacobians, jacobians


@given(jacobian=jacobians(max_tasks=5, scales=False))
def test_is_the_nearest_over_all_subsets(jacobian: Tensor) -> None:
    wanted = torch.eye(len(jacobian), dtype=jacobian.dtype)
    weights = project_on_dual_cone(gramian_of(jacobian), wanted)

    assert (weights >= wanted).all()
    for found, gradient in zip(weights @ jacobian, jacobian, strict=True):
        expected = nearest_without_conflict(jacobian, gradient)
        torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@given(jacobian=independent_jacobians(max_tasks=40))
def test_is_optimal_at_every_scale(jacobian: Tensor) -> None:
    G = gramian_of(jacobian)
    wanted = torch.ones(1, len(G), dtype=G.dtype)
    (v,) = project_on_dual_cone(G, wanted)

    lengths = G.diagonal().sqrt()
    slope = G @ v / (lengths * lengths.max())
    assert (v >= 1).all()
    assert (slope >= -1e-12).all()
    assert (slope * (v - 1) * lengths / lengths.max()).abs().max() <= 1e-12


def test_nothing_to_project_stays_nothing() -> None:
    assert project_on_dual_cone(torch.eye(2).double(), torch.zeros(1, 2).double()).tolist() == [
        [0, 0]
    ]
