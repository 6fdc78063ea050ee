"""Truncated BPTT: segments in order, the state detached between them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from gradwright.loops.segments.data.pieces import Piece
from gradwright.loops.segments.guard import Guard
from gradwright.loops.segments.run import Run, call
from gradwright.loops.segments.segment import Segment, segment_of
from gradwright.loops.segments.state.between import OneStructure, copied, detached
from gradwright.loops.segments.ways import Ways

Data = TypeVar("Data")

Weigh = Callable[[Piece[Data]], tuple[float, float]]
"""From a segment to its tokens and what its loss is multiplied by."""


class Past(Generic[Data]):
    """The last segments with the states before them, for gradients that go back through them."""

    def __init__(self, history: int) -> None:
        self._history = history  # times
        self._kept: deque[tuple[Piece[Data], Any]] = deque()

    def again(self, run: Run[Data], ways: Ways, state: Any) -> Any:
        """The state now, computed once more from the oldest state kept, with today's parameters."""
        if not self._kept:
            return state
        state = self._kept[0][1]
        for position, (piece, _) in enumerate(self._kept):
            self._kept[position] = piece, copied(detached(state))
            state = call(run, piece.data, ways.enter(state, piece), piece.index).state
        return state

    def add(self, piece: Piece[Data], state: Any) -> None:
        """Keep a segment and the state before it; forget what lies too far back."""
        if not self._history:
            return
        self._kept.append((piece, copied(detached(state))))
        times = sum(piece.length for piece, _ in self._kept)
        while times - self._kept[0][0].length >= self._history:
            times -= self._kept.popleft()[0].length

    def clear(self) -> None:
        """Begin anew."""
        self._kept.clear()


def truncated_segments(
    pieces: Iterable[Piece[Data]],
    run: Run[Data],
    state: Any,
    ways: Ways,
    weigh: Weigh[Data],
    past: Past[Data],
    guard: Guard | None,
) -> Iterator[Segment[Data, Any]]:
    """Run the segments one after the other; those without tokens are not handed on."""
    structure = OneStructure()
    for piece in pieces:
        count, weight = weigh(piece)
        if guard is not None and weight:
            guard.check()
        before = past.again(run, ways, state)
        past.add(piece, before)
        ran = call(run, piece.data, ways.enter(before, piece), piece.index)
        structure.check(ran.state, piece.index)
        state = detached(ran.state)
        ways.leave(state, piece)
        if weight:
            if guard is not None:
                guard.note(ran.present, [])
            yield segment_of(piece, ran, state, count, weight)
