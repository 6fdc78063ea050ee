"""The nearest point of the simplex."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradwright.weighting.solver import project_on_simplex

points = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


def by_bisection(point: torch.Tensor) -> torch.Tensor:
    """max(point - t, 0) for the t that makes its sum 1."""
    low, high = float(point.min()) - 1, float(point.max())
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if (point - t).clamp(min=0).sum() > 1 else (low, t)
    return (point - low).clamp(min=0)


@given(point=points)
def test_is_what_bisection_gives(point: list[float]) -> None:
    vector = torch.tensor(point, dtype=torch.float64)
    torch.testing.assert_close(
        project_on_simplex(vector), by_bisection(vector), rtol=1e-8, atol=1e-10
    )


@given(point=points)
def test_rows_are_projected_each_for_itself(point: list[float]) -> None:
    vector = torch.tensor(point, dtype=torch.float64)
    together = project_on_simplex(torch.stack([vector, -vector, 2 * vector]))

    for found, row in zip(together, [vector, -vector, 2 * vector], strict=True):
        assert torch.equal(found, project_on_simplex(row))


def test_a_point_on_it_stays() -> None:
    point = torch.tensor([0.25, 0.0, 0.75]).double()
    torch.testing.assert_close(project_on_simplex(point), point)


@pytest.mark.parametrize("size", [1e3, 1e16, 1e20, 1e300])
def test_a_point_far_away_is_projected_as_exactly(size: float) -> None:
    """Moved along (1, …, 1) by any power of two, the nearest point is the same."""
    shift = 2.0 ** round(math.log2(size))
    equal = project_on_simplex(torch.full((4,), shift, dtype=torch.float64))
    torch.testing.assert_close(equal, torch.full((4,), 0.25).double(), rtol=0, atol=0)
    one = project_on_simplex(torch.tensor([-1.0, 1.0, 0.5, -2.0]).double() * shift)
    torch.testing.assert_close(one, torch.tensor([0.0, 1.0, 0.0, 0.0]).double(), rtol=0, atol=0)


def test_a_difference_below_1_counts_beside_a_large_number() -> None:
    near = torch.tensor([0.25, 0.0, 0.5]).double()
    torch.testing.assert_close(project_on_simplex(near + 2.0**40), project_on_simplex(near))
