"""How much gradient reaches back over each number of times."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from torch import Tensor

from gradwright.loops.segments.measure.gradient import StateSeen, norm, sent_back
from gradwright.loops.segments.measure.subject import Subject
from gradwright.loops.segments.measure.tried import Progress
from gradwright.loops.segments.measure.untouched import untouched

_FINENESS = 8  # lags in a doubling; below twice that, every lag


@dataclass(frozen=True, slots=True)
class Lags:
    """The gradient of the loss of one time for the state `lag` times before.

    A border between segments that lies `lag` times before a loss cuts off this much.
    """

    lags: tuple[int, ...]  # times, 1 first
    norms: tuple[float, ...]  # [lag] ‖∂L_t/∂h_(t - lag)‖, the mean over the ends t
    ends: tuple[int, ...]  # the times t

    @property
    def relative(self) -> tuple[float, ...]:
        """The norms in units of that at lag 1: [lag]; not a number where nothing goes back."""
        first = self.norms[0] or float("nan")
        return tuple(norm / first for norm in self.norms)


def measure_lags(
    subject: Subject[Any], longest: int, n_ends: int, chunk: int, progress: Progress
) -> Lags | None:
    """Every lag up to 16, then ever fewer, for ends late in the batch.

    Args:
        subject: What to run.
        longest: The longest lag, less than the batch's times.
        n_ends: For how many times t the loss is followed back.
        chunk: How long a segment may be, in times.
        progress: Told about each end.

    Returns:
        None where no end has a token.
    """
    lags = list(_lags(longest, chunk))
    ends = [end for end in _spread(longest, subject.times - 1, n_ends) if _has_token(subject, end)]
    found = []
    for end in ends:
        progress(f"lags 1 to {lags[-1]}, back from time {end}")
        found.append(_norms(subject, end, lags, chunk))
    if not found:
        return None
    means = [sum(norms) / len(ends) for norms in zip(*found, strict=True)]
    return Lags(tuple(lags), tuple(means), tuple(ends))


def _lags(longest: int, chunk: int) -> Iterator[int]:
    """Ascending, the longest among them; one segment lies between two."""
    lag = 1
    while lag < longest:
        yield lag
        lag += min(max(lag // _FINENESS, 1), chunk)
    yield longest


def _spread(first: int, last: int, number: int) -> list[int]:
    """Whole numbers evenly from `first` to `last`, the last one always."""
    number = min(number, last - first + 1)
    gaps = max(number - 1, 1)
    return [last - (last - first) * index // gaps for index in reversed(range(number))]


def _has_token(subject: Subject[Any], time: int) -> bool:
    if subject.count is None:
        return True
    return float(subject.count(subject.layout.cut(subject.batch, time, 1))) > 0


def _norms(subject: Subject[Any], end: int, lags: Sequence[int], chunk: int) -> list[float]:
    """Of the loss at one time; exact segments, of which only that of this time has a token."""
    lengths = _lengths(subject.times, end, lags, chunk)
    of_segment = iter(lengths)
    tokens = iter([float(start == end) for start in accumulate(lengths, initial=0)])

    def count(_: Any) -> float | Tensor:
        return next(tokens)

    run, norms = StateSeen(subject.run), list[float]()
    with untouched():
        for segment in subject.bptt(run, lambda: next(of_segment), True, count)(subject.batch):
            norms.append(norm(sent_back(segment, run)[1]))
            if len(norms) == len(lags):
                break
    return norms + [0.0] * (len(lags) - len(norms))  # where no state before had a part in it


def _lengths(times: int, end: int, lags: Sequence[int], chunk: int) -> list[int]:
    """Of all segments: up to the longest lag, from lag to lag, time `end` alone, and the rest."""
    gaps = [after - before for before, after in pairwise(lags)]
    return [
        *_chunks(end - lags[-1] + 1, chunk),
        *reversed(gaps),
        1,
        *_chunks(times - end - 1, chunk),
    ]


def _chunks(times: int, chunk: int) -> Iterator[int]:
    yield from [chunk] * (times // chunk)
    if times % chunk:
        yield times % chunk
