"""The sample of slow tests is spread over all test functions."""

from tests.sampling import STRIDE, sample


def test_every_function_is_sampled() -> None:
    keys = ["a"] * 9 + ["b"] + ["c"] * 3

    chosen = sample(keys)

    assert chosen == [0, STRIDE, 2 * STRIDE, 9, 10]


def test_interleaved_functions_are_counted_apart() -> None:
    assert sample(["a", "b"] * STRIDE) == [0, 1]


def test_nothing_slow() -> None:
    assert sample([]) == []
