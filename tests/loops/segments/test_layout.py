"""Time is cut along any dimension of nested batches, and what does not fit is named."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

import gradwright as gw
from gradwright.loops import NestedError, SegmentError

Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Example:
    x: Tensor
    weights: Tensor
    label: str = "none"


def segments_of(batch: Any, length: Any = 3, **how: Any) -> list[Any]:
    """The data of the segments of a batch."""
    weight = torch.ones((), requires_grad=True)
    return [
        segment.data for segment in gw.tbptt(lambda *_: (weight * 1, None), length, **how)(batch)
    ]


def times(*shape: int, dim: int) -> Tensor:
    """Every entry is its time."""
    line = torch.arange(shape[dim])
    return line.view([-1 if d == dim % len(shape) else 1 for d in range(len(shape))]).expand(shape)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize(
    ("total", "lengths"),
    [(7, [3, 3, 1]), (6, [3, 3]), (3, [3]), (2, [2]), (1, [1])],
    ids=["T=7", "T=6", "T=3", "T=2", "T=1"],
)
def test_any_dimension_with_a_ragged_tail(dim: int, total: int, lengths: list[int]) -> None:
    shape = [5, 5, 5]
    shape[dim] = total
    batch = times(*shape, dim=dim)

    found = segments_of(batch, dim=dim)

    assert [part.shape[dim] for part in found] == lengths
    assert torch.equal(torch.cat(found, dim), batch)


BATCHES: dict[str, tuple[Any, Any, Callable[[Any], list[Tensor]]]] = {
    "tensor": (times(2, 7, dim=1), 1, lambda b: [b]),
    "tuple": ((times(2, 7, dim=1), times(2, 7, 3, dim=1)), 1, list),
    "list": ([times(2, 7, dim=1)], 1, list),
    "dict": ({"x": times(2, 7, dim=1), "y": times(2, 7, dim=1)}, 1, lambda b: [b["x"], b["y"]]),
    "namedtuple": (Pair(times(2, 7, dim=1), times(2, 7, dim=1)), 1, lambda b: [b.x, b.y]),
    "dataclass": (Example(times(2, 7, dim=1), times(2, 7, dim=1)), 1, lambda b: [b.x, b.weights]),
    "nested": (
        {"in": [(times(2, 7, dim=1), "word", None)], "n": 3},
        1,
        lambda b: [b["in"][0][0]],
    ),
    "a dimension for each": (
        (times(2, 7, dim=1), times(7, 2, dim=0)),
        (1, 0),
        lambda b: [b[0], b[1].t()],
    ),
    "list of dimensions": ([times(2, 7, dim=1), times(7, dim=0)], [1, 0], lambda b: [b[0], b[1]]),
    "dimensions of a dict": (
        {"x": times(2, 7, dim=1), 3: times(7, dim=0)},
        {"x": -1, 3: 0},
        lambda b: [b["x"], b[3]],
    ),
    "dimensions of a dataclass": (
        Example(times(2, 7, dim=1), times(7, dim=0)),
        {"x": 1, "weights": 0},
        lambda b: [b.x, b.weights],
    ),
    "dimensions of a namedtuple": (
        Pair(times(2, 7, dim=1), times(7, dim=0)),
        Pair(1, 0),
        lambda b: [b.x, b.y],
    ),
    "one dimension for a whole part": (
        {"a": [times(7, 2, dim=0)] * 11, "b": times(2, 7, dim=1)},
        {"a": 0, "b": 1},
        lambda b: [b["a"][0].t(), b["a"][10].t(), b["b"]],
    ),
}


@pytest.mark.parametrize("name", BATCHES)
def test_nested_batches(name: str) -> None:
    batch, dim, leaves = BATCHES[name]

    found = segments_of(batch, dim=dim)

    assert all(type(part) is type(batch) for part in found)
    for pieces in zip(*(leaves(part) for part in found), strict=True):
        assert [piece.flatten()[0] for piece in pieces] == [0, 3, 6]
        assert [piece.shape[-1 if piece.dim() < 3 else 1] for piece in pieces] == [3, 3, 1]


def test_what_has_no_time_goes_whole_into_every_segment() -> None:
    vector = torch.ones(9)

    found = segments_of({"x": times(2, 7, dim=1), "speaker": vector}, dim={"x": 1, "speaker": None})

    assert len(found) == 3
    assert all(part["speaker"] is vector for part in found)


@pytest.mark.parametrize(
    "length", [numpy.int64(3), lambda: numpy.int32(3)], ids=["number", "drawn"]
)
def test_lengths_may_come_from_numpy(length: Any) -> None:
    assert [part.shape[1] for part in segments_of(times(2, 7, dim=1), length)] == [3, 3, 1]


def test_lengths_may_be_asked_for_one_by_one() -> None:
    lengths = iter([2, 4, 99])

    found = segments_of(times(2, 7, dim=1), lambda: next(lengths))

    assert [part.shape[1] for part in found] == [2, 4, 1]


BAD: dict[str, tuple[Any, Any, str]] = {
    "length 0": (torch.ones(2, 0), 1, "`batch` has length 0 along time"),
    "lengths differ": (
        {"x": torch.ones(2, 7), "y": torch.ones(2, 6)},
        1,
        r"`batch\['x'\]` has 7 \(dim 1\), `batch\['y'\]` has 6 \(dim 1\)",
    ),
    "packed lengths differ": (
        (pack_sequence([torch.ones(3)]), torch.ones(1, 2)),
        1,
        r"`batch\[0\]` has 3, `batch\[1\]` has 2",
    ),
    "packed rows differ": (
        (pack_sequence([torch.ones(3)]), pack_sequence([torch.ones(3), torch.ones(2)])),
        1,
        r"different lengths: \[1, 1, 1\] and \[2, 2, 1\]",
    ),
    "no such dimension": (
        [torch.ones(7), torch.ones(7, 7)],
        1,
        r"`batch\[0\]` has shape \[7\], so it has no dimension 1",
    ),
    "no such negative dimension": (torch.ones(7), -2, r"no dimension -2"),
    "a scalar": ({"x": torch.ones(2, 7), "s": torch.ones(())}, 1, r"`batch\['s'\]` has shape \[\]"),
    "empty batch": ((), 1, "no tensor with a time"),
    "only what has no time": (torch.ones(2, 7), None, "no tensor with a time"),
    "a tensor that `dim` leaves out": (
        {"x": torch.ones(2, 7), "y": torch.ones(2, 7)},
        {"x": 1},
        r"`dim` says nothing of `batch\['y'\]`",
    ),
    "`dim` nested deeper than the batch": (torch.ones(2, 7), (1,), "`dim` says nothing of `batch`"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_cut_is_named(name: str) -> None:
    batch, dim, message = BAD[name]

    with pytest.raises(SegmentError, match=message):
        gw.tbptt(lambda *_: None, 3, dim=dim)(batch)  # type: ignore[arg-type]


def test_an_unknown_type_is_named_with_its_place() -> None:
    with pytest.raises(NestedError, match=r"`batch\['x'\]\[0\]` is a numpy.ndarray"):
        segments_of({"x": [torch.ones(2, 7).numpy()]})
