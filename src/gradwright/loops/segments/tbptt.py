"""`tbptt`: backpropagation through time, one segment of the sequence after the other."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from gradwright.loops.errors import SegmentError
from gradwright.loops.segments.arguments import (
    Length,
    Step,
    check_modes,
    check_words,
    next_length,
)
from gradwright.loops.segments.counts import (
    Average,
    Reduction,
    factors_of_window,
    numbers,
    one_count,
    weight_of_segment,
)
from gradwright.loops.segments.data.layout import Dims
from gradwright.loops.segments.data.pieces import Piece, Reset, StreamPieces, WindowPieces
from gradwright.loops.segments.exact import exact_segments
from gradwright.loops.segments.guard import Guard
from gradwright.loops.segments.run import Run
from gradwright.loops.segments.segment import Segment
from gradwright.loops.segments.state.packed import PackedRows, packed_in
from gradwright.loops.segments.state.rows import reset_rows
from gradwright.loops.segments.truncated import Past, Weigh, truncated_segments
from gradwright.loops.segments.ways import Ways

Data = TypeVar("Data")


class tbptt(Generic[Data]):
    """Runs a recurrent model over sequences, segment by segment; the loop's steps stay yours.

    Calling it with a batch gives the segments one after the other. The loop calls a backward on
    `segment.loss`, and steps and zeroes the gradients where it wants to. The state goes from
    segment to segment without its graph (Williams and Peng: An Efficient Gradient-Based Algorithm
    for On-Line Training of Recurrent Network Trajectories, Neural Computation 1990).

    Args:
        run: `run(segment, state)` returns `(loss, state)`: the loss of this segment, and the
            state after it. The state is None at first (see `initial`). It may be a tensor, a
            tuple, a list, a dict, a dataclass, a Hugging Face cache, a PackedSequence, or nested;
            all that goes from segment to segment must be in it, nothing kept in the module.
            A third value is handed on as `segment.output`. Several losses by name are handed on
            as `segment.losses`, for `gradwright.backward`.
        length: Times per segment (k1); the last one may be shorter. Or a function that is asked
            for each length, such as `RandomLengths(70)`. Not needed for a `stream`.
        dim: The dimension of time in the batch's tensors; nested as the batch is, where they
            differ, with None for what has no time.
        exact: Give the gradient of full BPTT, with the graph of one segment in memory at a time:
            each segment runs twice, and the loop gets the last one first. One optimizer step
            after the loop. Random numbers, autocast and BatchNorm's statistics are as in one run.
            Under `torch.no_grad()` each segment runs once, in order.
        history: Times before each segment that its gradient goes back through (k2 - k1), at
            least: whole segments are computed again, from a stored state, with the parameters of
            now.
        step: Whether the loop calls `optimizer.step()` after each "segment" (the default), or once
            per "window", after all of them: then each loss is the segment's share of the window's
            mean, and the gradients add up to that of the mean.
        average: Of a window, each token counts the same ("tokens"), or each segment does
            ("segments": a mean of means, wrong where lengths differ).
        reduction: What the loss of `run` is over the segment's tokens: their "mean" or "sum".
        count: From a segment's data to its number of tokens, for instance those not masked; by
            default its times. A segment without tokens trains nothing, it moves the state on.
        carry: Go on from batch to batch with the state, where rows continue.
        initial: The state at the start and after a reset: nested as the state is, with as many
            rows, or a function from the segment's data to it, which may have a graph.
        rows: The dimension of rows in the state's tensors, where resets cannot tell.

    Raises:
        SegmentError: An argument makes no sense, or not together with another.

    After an error in the middle of a window every `.grad` is what it was before the window, where
    `step` is "window"; that takes a copy of the gradients that were there.

    Example:
        >>> import torch, gradwright as gw
        >>> lstm, head = torch.nn.LSTM(3, 8, batch_first=True), torch.nn.Linear(8, 3)
        >>> optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
        >>> def run(segment, state):
        ...     out, state = lstm(segment, state)
        ...     return (head(out) - segment).square().mean(), state
        >>> bptt = gw.tbptt(run, length=35, dim=1)
        >>> for segment in bptt(torch.ones(2, 100, 3)):
        ...     optimizer.zero_grad()
        ...     segment.loss.backward()
        ...     optimizer.step()
        >>> segment.length, bptt.state[0].shape
        (30, torch.Size([1, 2, 8]))
    """

    state: Any
    """The state after the last segment, without a graph; with `carry` the next batch's start."""

    def __init__(
        self,
        run: Run[Data],
        length: Length | None = None,
        *,
        dim: Dims = 1,
        exact: bool = False,
        history: int = 0,
        step: Step | None = None,
        average: Average = "tokens",
        reduction: Reduction = "mean",
        count: Callable[[Data], float | Tensor] | None = None,
        carry: bool = False,
        initial: Any = None,
        rows: int | None = None,
    ) -> None:
        check_words(step, average, reduction)
        check_modes(exact, history, step, average)
        self._next_length = next_length(length)
        self._run, self._dims, self._exact = run, dim, exact
        self._per_window = exact or step == "window"
        self._average, self._reduction, self._count = average, reduction, count
        self._carry, self._initial, self._rows = carry, initial, rows
        self._history, self._past = history, Past[Data](history)
        self.state = None

    def __call__(self, batch: Data, *, reset: Reset[Data] = None) -> Iterator[Segment[Data, Any]]:
        """The segments of one batch.

        Args:
            batch: Tensors with a time, nested: tuples, dicts, dataclasses, PackedSequences.
            reset: The rows where a new document begins: bool [row] for the start of the batch, or
                bool [row, time], laid out as the batch is; a segment then ends where a document
                does. Or a function from a segment's data to bool [row].

        Raises:
            SegmentError: Lengths do not match, there is nothing to cut, a loss has no graph, the
                tokens of the window are 0, or the loop broke the rules of its mode.
            StateError: The state changes its structure, or its rows cannot be reset.
        """
        if self._next_length is None:
            raise SegmentError(
                "`length` is missing: say how many times a segment has, or use `stream`."
            )
        pieces = WindowPieces(batch, self._dims, self._next_length, reset)
        packed = packed_in(batch)
        if packed is not None and self._carry and self._history:
            raise SegmentError(
                "`history` does not go back from one packed batch to another, whose rows lie in "
                "another order: leave out `history` or `carry`."
            )
        rows = None if packed is None else PackedRows(packed, self._rows)
        return self._segments(pieces, rows)

    def stream(
        self, segments: Iterable[Data], *, reset: Reset[Data] = None
    ) -> Iterator[Segment[Data, Any]]:
        """The same for segments that come one at a time: nobody holds the whole sequence.

        Args:
            segments: Any iterable; with `exact`, one with `len()` and `[index]`.
            reset: As above, for each segment: a function from its data to bool [row], or bool
                [row] for the first one.
        """
        if self._per_window and not self._exact:
            raise SegmentError(
                "a stream's number of tokens is not known before its end, so its losses cannot be "
                'weighted for one step per window: say step="segment", or add the segments up in '
                "a gradwright.Window."
            )
        return self._segments(StreamPieces(segments, self._dims, reset), None)

    def reset(self) -> None:
        """Forget the state: the next batch begins anew."""
        self.state = None
        self._past.clear()

    def _segments(
        self, pieces: WindowPieces[Data] | StreamPieces[Data], packed: PackedRows | None
    ) -> Iterator[Segment[Data, Any]]:
        if not self._carry:
            self.reset()
        guard = Guard()
        ways = Ways(
            enter=partial(self._enter, packed=packed), leave=partial(self._leave, packed=packed)
        )
        try:
            if self._exact and torch.is_grad_enabled():
                factors = partial(
                    factors_of_window, average=self._average, reduction=self._reduction
                )
                tally = self._tally
                yield from exact_segments(
                    pieces, self._run, self.state, ways, tally, factors, guard
                )
            else:
                weigh = self._weigher(pieces)
                watched = guard if self._per_window else None
                yield from truncated_segments(
                    pieces, self._run, self.state, ways, weigh, self._past, watched
                )
        except Exception:
            guard.undo()
            raise
        if packed is not None:
            self.state = packed.whole()

    def _enter(self, state: Any, piece: Piece[Data], packed: PackedRows | None) -> Any:
        """The state that a segment begins with."""
        in_order = state is None and callable(self._initial)  # it is made from the segment
        if state is None:
            state = self._fresh(piece)
        if packed is not None and state is not None and not in_order:
            state = packed.enter(state, piece)
        if piece.reset is None or state is None:
            return state
        if self._initial is None and piece.reset.all():
            return None  # all rows begin anew, as in the first segment
        return reset_rows(state, piece.reset, self._fresh(piece), self._rows)

    def _leave(self, state: Any, piece: Piece[Data], packed: PackedRows | None) -> None:
        """The state after a segment, without a graph."""
        self.state = state
        if packed is not None:
            packed.leave(state, piece)

    def _fresh(self, piece: Piece[Data]) -> Any:
        return self._initial(piece.data) if callable(self._initial) else self._initial

    def _tally(self, piece: Piece[Data]) -> float | Tensor:
        """The tokens of a segment."""
        if self._count is None:
            return piece.tokens
        return one_count(self._count(piece.data), piece.index)

    def _weigher(self, pieces: WindowPieces[Data] | StreamPieces[Data]) -> Weigh[Data]:
        """From a segment to its tokens and what its loss is multiplied by."""
        if not self._per_window:
            return lambda piece: weight_of_segment(self._tally(piece), self._reduction, piece.index)
        counts = self._tallies(pieces)
        factors = factors_of_window(counts, self._average, self._reduction)
        return lambda piece: (counts[piece.index], factors[piece.index])

    def _tallies(self, pieces: WindowPieces[Data] | StreamPieces[Data]) -> list[float]:
        """The tokens of all segments; no data is cut where nobody looks at it."""
        if self._count is None and isinstance(pieces, WindowPieces):
            return [float(pieces.tokens(index)) for index in range(len(pieces))]
        return numbers([self._tally(pieces[index]) for index in range(len(pieces))])
