"""The grouping of GO4Align against trying every way to cut."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from gradwright.weighting.go4align import group_means
from tests.reference import grouping

# Whole numbers times a power of two: no grouping wins by rounding alone
VALUES = st.lists(st.integers(1, 64).map(lambda n: n / 8), min_size=1, max_size=7)


@given(VALUES, st.integers(1, 4))
def test_no_other_grouping_is_closer(values: list[float], n_groups: int) -> None:
    numbers = torch.tensor(values, dtype=torch.float64)

    found = group_means(numbers, n_groups)

    best = grouping.group_means(numbers, n_groups)
    distances = [(numbers - means).square().sum() for means in (found, best)]
    torch.testing.assert_close(distances[0], distances[1], rtol=0, atol=1e-9)
    assert len(found.unique()) <= n_groups


def test_two_clear_groups() -> None:
    values = torch.tensor([5.0, 1.0, 4.0, 1.2])
    torch.testing.assert_close(group_means(values, 2), torch.tensor([4.5, 1.1, 4.5, 1.1]))


def test_one_group_is_the_mean_and_many_groups_are_the_values() -> None:
    values = torch.tensor([3.0, 1.0, 2.0])
    torch.testing.assert_close(group_means(values, 1), torch.full((3,), 2.0))
    torch.testing.assert_close(group_means(values, 5), values)
