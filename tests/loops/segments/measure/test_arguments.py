"""Budgets as people write them, and arguments that make no sense."""

import pytest
import torch

from gradwright.loops import SegmentError, measure_lengths
from gradwright.loops.segments.measure.budget import in_words, read_budget
from tests.loops.segments.measure.recurrences import Linear, inputs


@pytest.mark.parametrize(
    ("budget", "size"),
    [
        (1, 1),
        ("17", 17),
        ("17 B", 17),
        ("1kB", 1000),
        ("1 KiB", 1024),
        ("512 MB", 512 * 10**6),
        (" 512mb ", 512 * 10**6),
        ("2 GiB", 2 * 2**30),
        ("1.5 GB", 1_500_000_000),
        (".5G", 500_000_000),
        ("3 TB", 3 * 10**12),
        ("3 TiB", 3 * 2**40),
    ],
)
def test_budget(budget: int | str, size: int) -> None:
    assert read_budget(budget) == size


@pytest.mark.parametrize(
    "budget", [0, -5, True, 1.5, None, "", "GB", "2 XB", "-2 GB", "two GB", "0 GB", "0.1 B", "1 2"]
)
def test_no_budget(budget) -> None:
    with pytest.raises(SegmentError, match=r"`budget` is .*512 MB"):
        read_budget(budget)


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (12_345, "12.3 kB"), (999_000, "999 kB")],
)
def test_in_words(size: int, words: str) -> None:
    assert in_words(size) == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "much"}, "`budget` is 'much'"),
        ({"lengths": []}, "`lengths` is empty"),
        ({"lengths": [4, 0]}, "`lengths` has 0: .* from 1 to the 10 times"),
        ({"lengths": [11]}, "`lengths` has 11"),
        ({"lengths": [2.5]}, "`lengths` has 2.5"),
        ({"lags": 10}, "`lags` is 10: the longest lag must be less than the 10 times"),
        ({"lags": -1}, "`lags` is -1"),
        ({"ends": 0}, "`ends` is 0"),
        ({"dim": 2}, "no dimension 2"),
        ({"reduction": "max"}, "`reduction` is 'max'"),
    ],
)
def test_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(SegmentError, match=message):
        measure_lengths(Linear(0.5), inputs(10), **{"budget": "1 MB", **arguments})  # type: ignore[arg-type]


def test_a_batch_too_short() -> None:
    with pytest.raises(SegmentError, match="`batch` has 1 time: there is nothing to choose"):
        measure_lengths(Linear(0.5), inputs(1), "1 MB")


def test_a_run_without_a_graph() -> None:
    with pytest.raises(SegmentError, match="segment 0 has no graph"):
        measure_lengths(lambda x, state: (x.sum(), None), torch.ones(1, 8), "1 MB")


def test_several_losses() -> None:
    model = Linear(0.5)

    def run(x, state):
        loss, state = model(x, state)
        return {"one": loss, "other": 2 * loss}, state

    with pytest.raises(SegmentError, match=r"2 losses.*add them up"):
        measure_lengths(run, inputs(8), "1 MB")


def test_long_batches_begin_with_longer_segments() -> None:
    def run(x, state):
        return (weight * x).sum(), None

    weight = torch.ones((), requires_grad=True)
    report = measure_lengths(run, torch.ones(1, 2000), 1000, lags=0)
    assert [each.length for each in report.tried] == [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2000]
