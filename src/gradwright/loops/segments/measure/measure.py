"""`measure_lengths`: tries lengths of segments on one batch, and changes nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from torch import Tensor

from gradwright.loops.errors import SegmentError
from gradwright.loops.segments.counts import Reduction
from gradwright.loops.segments.data.layout import Dims
from gradwright.loops.segments.measure.budget import read_budget
from gradwright.loops.segments.measure.lags import measure_lags
from gradwright.loops.segments.measure.report import LengthReport
from gradwright.loops.segments.measure.subject import Subject
from gradwright.loops.segments.measure.tried import Progress, try_lengths
from gradwright.loops.segments.run import Run

Data = TypeVar("Data")

_MOST_SEGMENTS = 512  # of the shortest default length


def measure_lengths(
    run: Run[Data],
    batch: Data,
    budget: int | str,
    dim: Dims = 1,
    *,
    lengths: Iterable[int] | None = None,
    lags: int | None = None,
    ends: int = 4,
    parameters: Iterable[Tensor] | None = None,
    reduction: Reduction = "mean",
    count: Callable[[Data], float | Tensor] | None = None,
    initial: Any = None,
    rows: int | None = None,
    progress: Progress = lambda line: None,
) -> LengthReport:
    """How long a segment may be for a memory budget, and what is lost by truncating there.

    Each length runs over the whole batch, truncated and exact: about three forward and two
    backward passes. A length that cannot fit, going by the two before it, is not run. Then the
    loss of single times is followed back, lag by lag.

    What one segment saves for backward is counted: every storage once, as a whole, without what
    was there before (parameters, buffers, the batch). It is the largest of the segments, so that
    a cache that grows is seen at its longest. Parameters, gradients, the optimizer's state, stored
    states and the scratch memory of a backward come on top.

    No `.grad` is written, and buffers and random numbers are afterwards as before. What `run`
    itself keeps from call to call is not put back.

    Args:
        run: As for `tbptt`: `run(segment, state)` returns `(loss, state)`, one loss.
        batch: A batch like those of the training.
        budget: Bytes, or a string: "512 MB", "2 GiB".
        dim: The dimension of time, as for `tbptt`.
        lengths: What to try; by default powers of two that make 512 segments at most, and
            the whole batch.
        lags: The longest lag; by default half of the batch. 0 leaves the lags out.
        ends: For how many times the loss is followed back; the norms are averaged.
        parameters: Whose gradient is compared; by default all that the losses reach.
        reduction: As for `tbptt`.
        count: As for `tbptt`.
        initial: As for `tbptt`.
        rows: As for `tbptt`.
        progress: Called with a line before each piece of work, for instance `print`.

    Raises:
        SegmentError: The batch is too short, an argument makes no sense, or `run` returned a loss
            without a graph.

    Example:
        >>> import torch
        >>> lstm = torch.nn.LSTM(3, 8, batch_first=True).double()
        >>> def run(segment, state):
        ...     out, state = lstm(segment, state)
        ...     return out.square().mean(), state
        >>> report = measure_lengths(run, torch.ones(2, 64, 3).double(), budget="50 kB")
        >>> report.length
        32
        >>> report.lags.relative[0]
        1.0
    """
    size = read_budget(budget)
    subject = Subject(run, batch, dim, reduction, count, initial, rows)
    some = _lengths(lengths, subject.times)
    longest = _longest_lag(lags, ends, subject.times)
    only = None if parameters is None else list(parameters)
    tried = tuple(try_lengths(subject, some, size, only, progress))
    chunk = max((each.length for each in tried if each.fits), default=some[0])
    found = measure_lags(subject, longest, ends, chunk, progress) if longest else None
    return LengthReport(subject.times, size, tried, found)


def _lengths(lengths: Iterable[int] | None, times: int) -> Sequence[int]:
    """What to try, ascending."""
    if times < 2:
        raise SegmentError(
            f"`batch` has {times} time: there is nothing to choose. Give a batch as long as those "
            "of the training."
        )
    if lengths is None:
        powers = (2**power for power in range(times.bit_length()))
        return [*(p for p in powers if times <= p * _MOST_SEGMENTS and p < times), times]
    some = list(lengths)
    for length in some:
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= times:
            raise SegmentError(
                f"`lengths` has {length!r}: it must be whole numbers from 1 to the {times} times "
                "of the batch."
            )
    if not some:
        raise SegmentError("`lengths` is empty: give at least one, or leave it out.")
    return sorted(set(some))


def _longest_lag(lags: int | None, ends: int, times: int) -> int:
    """0 where none is asked for."""
    if ends < 1:
        raise SegmentError(f"`ends` is {ends}: at least one time must be followed back.")
    if lags is None:
        return times // 2
    if not 0 <= lags < times:
        raise SegmentError(
            f"`lags` is {lags}: the longest lag must be less than the {times} times of the batch, "
            "or 0 for none."
        )
    return lags
