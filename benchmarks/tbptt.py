"""What do segments cost, in memory, in time and in exactness, beside one graph over all times?

Three tables. Memory: the most that is saved for backward at one time, over that of full BPTT;
counted by storage, parameters and inputs included. Time: CPU time, one thread, the loops in turns
in one process, on one model; the median over the pairs, the lowest and the highest. Exactness:
‖g - g_full‖ / ‖g_full‖ of the gradient over a whole sequence, no step between.

"by hand" is the truncated loop as it is found everywhere: `split` the sequence, `detach` the
state, weigh each segment by its times. It pins the whole sequence, as its segments are views.
"mean of means" is the same with each segment counting the same, however short the last one is.
"truncated" and "exact" are `gradwright.tbptt` with one step per window.

Read it so: exact segments run forward twice, which is a third more than a plain step where forward
takes a third of it. On long sequences it is less, because the graph of one segment stays in the
processor's cache: truncated segments are then faster than full BPTT. A truncated segment costs 0.1
to 0.2 ms more than by hand, about half of it to copy its data out of the sequence.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from benchmarks._saved_bytes import peak_saved_bytes
from benchmarks._tbptt_loops import LOOPS, CellByCell, Make, Recurrent, Work, make
from benchmarks._turns import Spread, ratios_to

SMALL = make(Recurrent, size=16, hidden=32, rows=4, length=2048, dtype=torch.float64)
LARGE = make(Recurrent, size=128, hidden=256, rows=16, length=1024, dtype=torch.float32)
CELLS = make(CellByCell, size=16, hidden=32, rows=4, length=512, dtype=torch.float64)
SHORT = make(Recurrent, size=16, hidden=32, rows=4, length=100, dtype=torch.float64)

SAVED_LENGTHS = (16, 64, 256, 1024)
SAVED_GOALS = {16: 0.10, 64: 0.10}
ERROR_LENGTHS = (1, 7, 16, 30, 50, 64, 100)

Goals = Mapping[str, float]
"""The highest ratio, by the loop."""


@dataclass(frozen=True)
class Timed:
    """Loops to be timed, and what they may cost."""

    name: str
    make: Make
    length: int  # of a segment
    repeats: int
    over_full: Goals = field(default_factory=dict)
    over_hand: Goals = field(default_factory=dict)


TIMED = (
    Timed("LSTM 16 to 32, 4 rows", SMALL, 64, 2, {"exact": 1.35}, {"truncated": 1.10}),
    Timed("LSTM 128 to 256, 16 rows", LARGE, 64, 1, {"exact": 1.35}, {"truncated": 1.10}),
    Timed("LSTMCell 16 to 32, 4 rows", CELLS, 16, 6, {}, {"truncated": 1.10}),
    Timed("LSTM 16 to 32, 4 rows", SMALL, 16, 2),
)


def judged(value: float, goal: float | None) -> str:
    """What the goal is and whether the value, as printed with two decimals, keeps to it."""
    if goal is None:
        return ""
    return f"{goal:.2f} {'met' if round(value, 2) <= goal else 'missed'}"


def saved_rows() -> Iterator[str]:
    """The table of memory."""
    work = SMALL()
    base = peak_saved_bytes(partial(LOOPS["full BPTT"], work, 0))
    yield f"saved for backward over full BPTT ({work.length} times: {base / 1e6:.1f} MB)"
    yield f"{'length':>8} {'by hand':>9} {'truncated':>10} {'exact':>8}  goal"
    for length in SAVED_LENGTHS:
        hand, ours, exact = (
            peak_saved_bytes(partial(LOOPS[name], work, length)) / base
            for name in ("by hand", "truncated", "exact")
        )
        goal = judged(max(ours, exact), SAVED_GOALS.get(length))
        yield f"{length:8} {hand:9.3f} {ours:10.3f} {exact:8.3f}  {goal}".rstrip()


def time_rows(timed: Timed, pairs: int) -> Iterator[str]:
    """The table of time of one model."""
    work = timed.make()
    ways = {name: partial(loop, work, timed.length) for name, loop in LOOPS.items()}
    for way in ways.values():
        way()  # the first one fills caches
    yield f"{timed.name}, {work.length} times, segments of {timed.length}"
    for unit, names, goals in (
        ("full BPTT", ("truncated", "exact"), timed.over_full),
        ("by hand", ("truncated",), timed.over_hand),
    ):
        some = {name: ways[name] for name in (unit, *names)}
        seconds, spread = ratios_to(unit, some, pairs, timed.repeats)
        yield f"  {unit}: {1000 * seconds:.1f} ms"
        yield from (_time_row(name, spread[name], goals.get(name)) for name in names)


def _time_row(name: str, spread: Spread, goal: float | None) -> str:
    low, median, high = spread
    bounds = f"({low:.3f} to {high:.3f})"
    return f"    {name:10} {median:6.3f} {bounds:18} {judged(median, goal)}".rstrip()


def relative_error(work: Work, loop: str, length: int, reference: Tensor) -> float:
    """Of the gradient that a loop leaves, in the norm of all parameters."""
    LOOPS[loop](work, length)
    return float((work.gradient() - reference).norm() / reference.norm())


def error_rows() -> Iterator[str]:
    """The table of exactness."""
    work, names = SHORT(), ("truncated", "mean of means", "exact")
    LOOPS["full BPTT"](work, 0)
    reference = work.gradient()
    yield f"relative error of the gradient ({work.length} times)"
    yield f"{'length':>8} {names[0]:>10} {names[1]:>14} {names[2]:>9}"
    for length in ERROR_LENGTHS:
        cut, means, exact = (relative_error(work, name, length, reference) for name in names)
        yield f"{length:8} {cut:10.3f} {means:14.3f} {exact:9.1e}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    print("\n".join(saved_rows()) + "\n", flush=True)
    print(f"time: one thread, {pairs} pairs; median (lowest to highest), goal")
    for timed in TIMED:
        print("\n".join(time_rows(timed, pairs)), flush=True)
    print("\n" + "\n".join(error_rows()))


if __name__ == "__main__":
    main()
