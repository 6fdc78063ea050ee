"""Refuses arguments of `tbptt` that make no sense, or none together."""

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Literal, get_args

from gradwright.loops.errors import SegmentError
from gradwright.loops.segments.counts import Average, Reduction

Length = int | Callable[[], int]
"""Times in a segment, or a function that is asked for each one (`RandomLengths`)."""

Step = Literal["segment", "window"]
"""After what the loop calls `optimizer.step()`."""


def next_length(length: Length | None) -> Callable[[], int] | None:
    """A function that gives one length after the other.

    Raises:
        SegmentError: `length` is no whole number above 0, and nothing to be called.
    """
    if length is None or callable(length):
        return length
    if not is_whole(length):
        raise SegmentError(
            f"`length` is {length!r}: it must be a whole number of times, 1 or more."
        )
    return partial(int, length)  # a lambda could not be pickled


def is_whole(length: object) -> bool:
    """Whether it is a whole number above 0, Python's or numpy's."""
    return isinstance(length, Integral) and not isinstance(length, bool) and int(length) > 0


def check_words(step: Step | None, average: Average, reduction: Reduction) -> None:
    """Refuse a word that is none of those asked for."""
    words = {
        "step": (step, Step),
        "average": (average, Average),
        "reduction": (reduction, Reduction),
    }
    for name, (word, kind) in words.items():
        known = get_args(kind)
        if word not in known and not (name == "step" and word is None):
            raise SegmentError(f"`{name}` is {word!r}: it must be {known[0]!r} or {known[1]!r}.")


def check_modes(exact: bool, history: int, step: Step | None, average: Average) -> None:
    """Refuse modes that exclude each other."""
    if average == "segments" and not exact and step != "window":
        raise SegmentError(
            'average="segments" says how the segments of one window are added up, but the loop '
            'steps after each of them: say step="window", or leave it out.'
        )
    if isinstance(history, bool) or not isinstance(history, int) or history < 0:
        raise SegmentError(
            f"`history` is {history!r}: it must be a whole number of times, 0 or more."
        )
    if exact and history:
        raise SegmentError(
            f"`history` is {history}, but `exact` goes back through the whole window: give one of "
            "the two."
        )
    if exact and step == "segment":
        raise SegmentError(
            'step="segment" does not go with `exact`: the gradient of the whole window is that of '
            "one set of parameters. Step once after the loop."
        )
