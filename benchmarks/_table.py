"""The table of `many_losses`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from benchmarks._contenders import LOSS_METHOD
from benchmarks._goals import (
    Figure,
    Verdict,
    fastest,
    in_peak,
    in_time,
    is_met,
    peak_goal,
    smallest,
    time_goal,
)

_HEAD = f"{'':20} {'time':>6}  {'(low to high)':15} {'goal':12}  {'peak':>6}  goal"


def table(figures: Iterable[Figure]) -> Iterator[str]:
    """The lines, one cell (workload, number of tasks, method) after the other."""

    def cell(figure: Figure) -> tuple[str, int, str]:
        return figure.workload, figure.n_tasks, figure.method

    for (workload, n_tasks, method), group in groupby(sorted(figures, key=cell), cell):
        found = list(group)
        yield f"{workload}, {n_tasks} tasks, {method}; where the losses say enough, {LOSS_METHOD}"
        yield _HEAD
        yield from map(_row, found)
        yield from _against_peers("losses alone", [f for f in found if f.reads_losses])
        yield from _against_peers("gradients", [f for f in found if not f.reads_losses])
        yield ""


def _row(figure: Figure) -> str:
    spread = f"({figure.low:.2f} to {figure.high:.2f})"
    time = _judged(figure.time, time_goal(figure.name, figure.n_tasks))
    peak = _judged(figure.peak, peak_goal(figure.name, figure.workload, figure.n_tasks))
    row = f"{figure.name:20} {figure.time:6.2f}  {spread:15} {time:12}  {figure.peak:6.2f}  {peak}"
    return row.rstrip()


def _judged(value: float, goal: float | None) -> str:
    if goal is None:
        return ""
    return f"{goal:.2f} {'met' if is_met(value, goal) else 'missed'}"


def _against_peers(what: str, figures: Sequence[Figure]) -> Iterator[str]:
    ours = [figure for figure in figures if figure.is_ours]
    peers = [figure for figure in figures if not figure.is_ours]
    yield from _best(f"time, {what}", fastest(ours), fastest(peers), in_time, lambda f: f.time)
    yield from _best(f"peak, {what}", smallest(ours), smallest(peers), in_peak, lambda f: f.peak)


def _best(
    what: str,
    ours: Figure | None,
    peer: Figure | None,
    judge: Callable[[Figure, Figure], Verdict],
    value: Callable[[Figure], float],
) -> Iterator[str]:
    if ours is not None and peer is not None:
        verdict = judge(ours, peer)
        yield (
            f"  best {what}: {ours.name} {value(ours):.2f}, {peer.name} {value(peer):.2f}: "
            f"{verdict}, {'missed' if verdict == 'behind' else 'met'}"
        )
