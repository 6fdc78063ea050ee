"""Tries one length after the other: what its segments save, and what truncation there loses."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gradwright.loops.segments.measure.budget import in_words
from gradwright.loops.segments.measure.gradient import (
    Gradient,
    StateSeen,
    add,
    difference,
    inner,
    norm,
    only,
    sent_back,
)
from gradwright.loops.segments.measure.saved import SavedBytes
from gradwright.loops.segments.measure.subject import Subject
from gradwright.loops.segments.measure.untouched import untouched
from gradwright.loops.segments.segment import Segment

Progress = Callable[[str], object]
"""Told in one line what is measured now; `print` for instance."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One length."""

    length: int  # times in a segment
    saved: int  # bytes that the largest segment saves for backward
    is_measured: bool  # if not, `saved` is extrapolated from the two longest that were
    fits: bool  # into the budget
    error: float | None  # ‖g_truncated - g‖ / ‖g‖, g the gradient of full BPTT; if measured
    cosine: float | None  # between the two


def try_lengths(
    subject: Subject[Any],
    lengths: Sequence[int],
    budget: int,
    parameters: Sequence[Tensor] | None,
    progress: Progress,
) -> Iterator[Tried]:
    """Each of the lengths, ascending; one that will not fit is estimated and not run."""
    known: list[tuple[int, int]] = []
    for length in lengths:
        estimate = extrapolated(known[-2], known[-1], length) if len(known) > 1 else None
        if estimate is not None and estimate > budget:
            yield Tried(length, estimate, False, False, None, None)
            continue
        about = "" if estimate is None else f": about {in_words(estimate)}"
        progress(f"segments of {length} times{about}")
        tried = _tried(subject, length, budget, parameters)
        known.append((length, tried.saved))
        yield tried


def extrapolated(one: tuple[int, int], other: tuple[int, int], length: int) -> int:
    """Bytes on the straight line through two (length, bytes), at least those of the second.

    Where memory grows faster than that, as that of attention does, it is too low: a length that
    does not fit going by it does not fit.

    Example:
        >>> extrapolated((2, 8), (4, 14), 8)
        26
    """
    (before, less), (last, more) = one, other
    slope = (more - less) / (last - before)
    return max(round(more + slope * (length - last)), more)


def _tried(
    subject: Subject[Any], length: int, budget: int, parameters: Sequence[Tensor] | None
) -> Tried:
    saved = SavedBytes()
    with saved.recording():
        truncated = only(_gradient(subject, length, False, lambda _: saved.mark()), parameters)
    size = saved.most()
    if length >= subject.times:
        return Tried(length, size, True, size <= budget, 0.0, 1.0)
    # At the same length, not at one for all: dropout and BatchNorm draw and see the same.
    exact = only(_gradient(subject, length, True, lambda _: None), parameters)
    error, cosine = _compared(truncated, exact)
    return Tried(length, size, True, size <= budget, error, cosine)


def _gradient(
    subject: Subject[Any], length: int, exact: bool, seen: Callable[[Segment[Any, Any]], None]
) -> Gradient:
    """Of all parameters; each segment is shown between its forward pass and its backward."""
    total, run = Gradient(), StateSeen(subject.run)
    with untouched():
        for segment in subject.bptt(run, length, exact)(subject.batch):
            seen(segment)
            add(total, sent_back(segment, run)[0])
            del segment
    return total


def _compared(truncated: Gradient, exact: Gradient) -> tuple[float, float]:
    """The relative error and the cosine; not a number where a gradient is 0."""
    one, other = norm(truncated), norm(exact)
    error = norm(difference(truncated, exact)) / other if other else float("nan")
    cosine = inner(truncated, exact) / (one * other) if one and other else float("nan")
    return error, cosine
