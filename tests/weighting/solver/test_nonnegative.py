"""Quadratic programs over x ≥ 0."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gradwright.weighting.solver import minimise_nonnegative, unit_diagonal


def assert_optimal(matrix: torch.Tensor, linear: torch.Tensor, x: torch.Tensor) -> None:
    slope = x @ matrix + linear
    tolerance = 1e-9 * (1 + x.max())  # the ridge, where many x are equally good
    assert (x >= 0).all()
    assert slope.min() >= -tolerance
    assert (slope * x).abs().max() <= tolerance


@given(
    n_tasks=st.integers(1, 12),
    rank=st.integers(1, 12),
    seed=st.integers(0, 2**32),
    whole=st.booleans(),
)
def test_is_optimal(n_tasks: int, rank: int, seed: int, whole: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    shape = (n_tasks, rank)
    jacobian = (
        torch.randint(-1, 2, shape, generator=generator).double()
        if whole
        else torch.randn(shape, generator=generator, dtype=torch.float64)
    )
    cosines, _ = unit_diagonal(jacobian @ jacobian.T)

    assert_optimal(cosines, cosines, minimise_nonnegative(cosines, cosines).x)


@pytest.mark.parametrize("rank", [5, 20, 36])
def test_many_equal_solutions_are_no_trap(rank: int) -> None:
    """40 gradients in fewer dimensions, of which some mean is 0: exchanging goes in circles."""
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        jacobian = torch.randn(40, rank, generator=generator, dtype=torch.float64)
        cosines, _ = unit_diagonal(jacobian @ jacobian.T)

        assert_optimal(cosines, cosines, minimise_nonnegative(cosines, cosines).x)


def test_a_guess_changes_nothing() -> None:
    jacobian = torch.randn(6, 9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cosines, _ = unit_diagonal(jacobian @ jacobian.T)
    expected = minimise_nonnegative(cosines, cosines)

    for guess in (expected.free, ~expected.free):
        found = minimise_nonnegative(cosines, cosines, guess)
        torch.testing.assert_close(found.x, expected.x, rtol=1e-12, atol=1e-12)
        assert torch.equal(found.free, expected.free)


def test_a_fall_without_end_shows_in_the_slope() -> None:
    """½ (x - y)² - x - y falls forever along x = y."""
    opposite = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double()
    linear = -torch.ones(1, 2).double()

    slope = minimise_nonnegative(opposite, linear).x @ opposite + linear

    assert slope.min() < -0.5
