"""Rows that cannot be told, masks that do not fit, states whose rows cannot be reset."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache

import gradwright as gw
from gradwright.loops import SegmentError, StateError, reset_rows
from tests.loops.segments.models import TIMES, batch, net

ROWS = 3

REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "several dimensions": (torch.ones(2, 2), {}, r"dimensions \[0, 1\] have 2 entries.*`rows=`"),
    "no dimension": ([torch.ones(3)], {}, r"`state\[0\]` has shape \[3\], and no dimension has 2"),
    "a wrong dimension": (torch.ones(3, 2), {"dim": 0}, "its dimension 0 has not 2 rows"),
    "a number": ((torch.ones(2, 4), 3), {}, r"`state\[1\]` is 3, one number for all rows"),
    "another number": (
        {"h": torch.ones(2, 4), "n": 3},
        {"fresh": {"h": torch.ones(2, 4), "n": 0}},
        r"`state\['n'\]` is 3, one number for all rows",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_rows_of_its_own_is_refused(name: str) -> None:
    state, how, message = REFUSED[name]

    with pytest.raises(StateError, match=message):
        reset_rows(state, torch.tensor([True, False]), **how)


@pytest.mark.parametrize(
    "mask",
    [torch.tensor([1, 0]), torch.tensor([[True, False]])],
    ids=["numbers", "two dimensions"],
)
def test_a_mask_is_bool_and_has_rows_only(mask: Tensor) -> None:
    with pytest.raises(StateError, match=r"must be bool \[row\]"):
        reset_rows(torch.ones(2, 4), mask)


@pytest.mark.parametrize(
    ("reset", "message"),
    [
        pytest.param(torch.zeros(ROWS, 7, dtype=torch.bool), r"shape \[3, 7\]", id="other times"),
        pytest.param(torch.zeros(1, 1, 1, dtype=torch.bool), r"shape \[1, 1, 1\]", id="3 dims"),
        pytest.param(torch.zeros(ROWS, TIMES), "bool", id="numbers"),
        pytest.param([True, False, False], "list", id="a list"),
    ],
)
def test_a_mask_that_does_not_fit_the_batch(reset: Any, message: str) -> None:
    with pytest.raises((SegmentError, StateError), match=message):
        gw.tbptt(net(), 20)(batch(rows=ROWS), reset=reset)


@pytest.mark.parametrize("reset", [[True, False, False], torch.zeros(ROWS)], ids=["list", "float"])
def test_a_mask_of_another_kind_for_a_stream(reset: Any) -> None:
    with pytest.raises(SegmentError, match="`reset` is"):
        gw.tbptt(net()).stream([], reset=reset)


def test_a_cache_is_not_reset_row_by_row() -> None:
    cache = DynamicCache()
    cache.update(*torch.ones(2, 2, 1, 3, 4), 0)

    for state in (cache, {"memory": (cache, torch.ones(2))}):
        with pytest.raises(StateError, match=r"key-value cache.*[Mm]ask"):
            reset_rows(state, torch.tensor([True, False]))
