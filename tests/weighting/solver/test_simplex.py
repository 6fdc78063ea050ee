"""The nearest point of the simplex."""

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
