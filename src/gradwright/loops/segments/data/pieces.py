"""The segments of one window, or of a stream, as data: not run yet."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from gradwright.loops.errors import SegmentError
from gradwright.loops.segments.arguments import is_whole
from gradwright.loops.segments.data.layout import Dims, Layout, layout_of

Data = TypeVar("Data")

NextLength = Callable[[], int]

Reset = Tensor | Callable[[Data], Tensor] | None
"""Rows where a new document begins: bool [row] at the start of the batch, bool [row, time] (or
[time, row], as the batch has it), or a function from a segment to bool [row] at its start."""


@dataclass(frozen=True, slots=True)
class Piece(Generic[Data]):
    """One segment to be run."""

    index: int
    start: int
    length: int
    data: Data
    tokens: int
    reset: Tensor | None  # bool [row]
    rows: tuple[int, ...] | None  # of packed sequences: those before it, those that it has


class Pieces(Protocol[Data]):
    """Segments that can be walked more than once, each made when it is asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Piece[Data]: ...


class WindowPieces(Generic[Data]):
    """The segments of a batch that is there as a whole."""

    def __init__(self, batch: Data, dims: Dims, length: NextLength, reset: Reset[Data]) -> None:
        self._batch, self._reset = batch, reset
        self.layout = layout_of(batch, dims)
        self._time_dim = _check_reset(reset, self.layout)
        self._spans = list(_spans(self.layout.length, length, self._borders()))
        self._is_cut = len(self._spans) > 1 or self.layout.batch_sizes is not None

    def __len__(self) -> int:
        return len(self._spans)

    def __iter__(self) -> Iterator[Piece[Data]]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Piece[Data]:
        start, length = self._spans[index]
        data = self.layout.cut(self._batch, start, length) if self._is_cut else self._batch
        mask, rows = self._mask(index, start, data), self.layout.rows(self._before(index), start)
        return Piece(index, start, length, data, self.tokens(index), mask, rows)

    def tokens(self, index: int) -> int:
        """The tokens of a segment, without cutting it out."""
        return self.layout.tokens(*self._spans[index])

    def _before(self, index: int) -> int:
        """When the segment before began."""
        return self._spans[max(index - 1, 0)][0]

    def _borders(self) -> list[int]:
        """Times at which some row begins a new document."""
        if self._time_dim is None:
            return []
        assert isinstance(self._reset, Tensor)
        begins = self._reset.any(dim=1 - self._time_dim)
        times: list[int] = begins.nonzero().flatten().tolist()
        return times

    def _mask(self, index: int, start: int, data: Data) -> Tensor | None:
        if self._reset is None or not isinstance(self._reset, Tensor):
            return None if self._reset is None else self._reset(data)
        if self._time_dim is None:
            return self._reset if index == 0 else None
        return self._reset.select(self._time_dim, start)


class StreamPieces(Generic[Data]):
    """Segments that come from somewhere else, one after the other."""

    def __init__(self, segments: Iterable[Data], dims: Dims, reset: Reset[Data]) -> None:
        self._segments, self._dims, self._reset = segments, dims, reset
        _check_kind(reset)
        self._starts = [0]  # of the segments met so far, and of the one after them

    def __iter__(self) -> Iterator[Piece[Data]]:
        return (self._piece(index, data) for index, data in enumerate(self._segments))

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, index: int) -> Piece[Data]:
        return self._piece(index, self._list[index])

    @property
    def _list(self) -> Sequence[Data]:
        if not isinstance(self._segments, Sequence) and not hasattr(self._segments, "__getitem__"):
            raise SegmentError(
                f"`segments` is a {type(self._segments).__name__}, which can be walked once, but "
                "the exact gradient runs every segment twice: give a list, or an object with "
                "`len()` and `[index]`."
            )
        return self._segments  # type: ignore[return-value]

    def _piece(self, index: int, data: Data) -> Piece[Data]:
        layout = layout_of(data, self._dims)
        if index + 1 == len(self._starts):
            self._starts.append(self._starts[index] + layout.length)
        mask = self._reset if isinstance(self._reset, Tensor | None) else self._reset(data)
        if isinstance(self._reset, Tensor) and index:
            mask = None
        tokens = layout.tokens(0, layout.length)
        return Piece(index, self._starts[index], layout.length, data, tokens, mask, None)


def _spans(total: int, length: NextLength, borders: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Starts and lengths: as long as said, or up to the next border."""
    ends = sorted({*borders, total} - {0})
    start = 0
    for end in ends:
        while start < end:
            step = min(_checked(length()), end - start)
            yield start, step
            start += step


def _checked(length: int) -> int:
    if not is_whole(length):
        raise SegmentError(
            f"`length` gave {length!r}: a segment needs a whole number of times, 1 or more."
        )
    return int(length)


def _check_reset(reset: object, layout: Layout) -> int | None:
    """The dimension of time in the mask, or None where it has none."""
    _check_kind(reset)
    if reset is not None and layout.batch_sizes is not None:
        raise SegmentError(
            "`reset` was given with packed sequences: each of their rows is one document, so "
            "there is nothing to reset."
        )
    if not isinstance(reset, Tensor) or reset.dim() == 1:
        return None
    dims = {dim for dim in layout.dims.values() if dim is not None}
    if reset.dim() == 2 and dims <= {0, 1} and len(dims) == 1:
        dim = dims.pop()
        if reset.shape[dim] == layout.length:
            return dim
    raise SegmentError(
        f"`reset` has shape {list(reset.shape)}: it must be [row], or [row, time] with the batch's "
        f"{layout.length} times where the batch has them."
    )


def _check_kind(reset: object) -> None:
    if isinstance(reset, Tensor):
        if reset.dtype is not torch.bool:
            raise SegmentError(f"`reset` is of {reset.dtype}: a mask of rows must be bool.")
    elif reset is not None and not callable(reset):
        raise SegmentError(
            f"`reset` is a {type(reset).__name__}: it must be a tensor, bool [row] or bool "
            "[row, time], or a function from a segment's data to bool [row]."
        )
