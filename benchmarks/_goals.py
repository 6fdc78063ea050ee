"""The goals of `many_losses` for time and peak memory, and who is ahead."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from benchmarks._contenders import CONTENDERS

_PEAKS = {("W1", 8): 1.4, ("W2", 8): 1.35, ("W3", 8): 1.6, ("W2", 20): 1.8, ("W3", 40): 2.0}
_SLACK = 1.15  # over the arithmetic

Verdict = Literal["ahead", "level", "behind"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What one contender needed for one step, as multiples of the plain step."""

    workload: str
    n_tasks: int
    method: str
    name: str
    low: float  # of time
    time: float  # the median
    high: float
    peak: float  # of memory

    @property
    def is_ours(self) -> bool:
        return CONTENDERS[self.name].is_ours

    @property
    def reads_losses(self) -> bool:
        """Whether its method reads the losses alone."""
        return CONTENDERS[self.name].kind == "losses"


def time_goal(name: str, n_tasks: int) -> float | None:
    """The most time; None where there is no goal.

    A plain step is three units: forward, input gradients, weight gradients. K tasks take 1 + 2K;
    without rows one more backward: 3 + 2K.
    """
    contender = CONTENDERS[name]
    if not contender.is_ours:
        return None
    match contender.kind:
        case "losses":
            return 1.03
        case "rows":
            return _SLACK * (1 + 2 * n_tasks) / 3
        case "lean":
            return _SLACK * (3 + 2 * n_tasks) / 3
        case _:
            return None


def peak_goal(name: str, workload: str, n_tasks: int) -> float | None:
    """The highest peak; None where there is no goal."""
    contender = CONTENDERS[name]
    if not contender.is_ours:
        return None
    if contender.kind == "losses":
        return 1.0
    return _PEAKS.get((workload, n_tasks)) if contender.kind == "lean" else None


def is_met(value: float, goal: float) -> bool:
    """Whether the figure, as printed with two decimals, is at most the goal."""
    return round(value, 2) <= round(goal, 2)


def in_time(ours: Figure, peer: Figure) -> Verdict:
    """Who is faster; level where one median lies within what was seen of the other."""
    if peer.low <= ours.time <= peer.high or ours.low <= peer.time <= ours.high:
        return "level"
    return "ahead" if ours.time < peer.time else "behind"


def in_peak(ours: Figure, peer: Figure) -> Verdict:
    """Who needs less memory, as printed."""
    mine, other = round(ours.peak, 2), round(peer.peak, 2)
    return "level" if mine == other else "ahead" if mine < other else "behind"


def fastest(figures: Iterable[Figure]) -> Figure | None:
    return min(figures, key=lambda figure: figure.time, default=None)


def smallest(figures: Iterable[Figure]) -> Figure | None:
    return min(figures, key=lambda figure: figure.peak, default=None)
