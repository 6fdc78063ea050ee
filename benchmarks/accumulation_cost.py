"""What does a window of `gradwright.windows` cost over the accumulation loop written by hand?

An epoch of 9 micro-batches, 4 to a window. "by hand" is the loop found everywhere, which divides
the mean of each micro-batch by 4: it is the unit. "exact by hand" takes sums and divides once.
Time is CPU time, one thread, a model for each loop, in turns in one process: the median over the
pairs, and the lowest and the highest. Peak is the memory that an epoch needs at most over what the
process held before it, in a process of its own; left out where that is next to nothing.

Read it so: what a window adds is Python; it grows with the number of parameter tensors, not with
their size nor with the batch. The ratio says how small the micro-batches are: one of the perceptron
takes a quarter of a millisecond, and nobody accumulates that.
"""

import argparse
import logging
from collections.abc import Iterator

import torch

from benchmarks._accumulation_loops import LOOPS, WORKS, Loop
from benchmarks._accumulation_peak import peak
from benchmarks._turns import ratios_to

_REPEATS = {"perceptron": 40, "tiny GPT-2": 6, "GPT-2": 1}
_PLAIN = "by hand"
_MEASURABLE = 10.0  # MB: below, a few pages make a ratio


def rows(work: str, pairs: int) -> Iterator[str]:
    """The lines of one model."""
    epochs = {name: _epoch(work, name) for name in LOOPS}
    seconds, spread = ratios_to(_PLAIN, epochs, pairs, _REPEATS[work])
    base = peak(work, _PLAIN)
    yield f"{work}: by hand {1000 * seconds:.2f} ms an epoch, {base:.1f} MB"
    for name, (low, median, high) in spread.items():
        bounds = f"({low:.3f} to {high:.3f})"
        memory = f"{peak(work, name) / base:6.2f}" if base > _MEASURABLE else ""
        yield f"  {name:14} {median:6.3f} {bounds:18} {memory}".rstrip()


def _epoch(work: str, loop: str) -> Loop:
    torch.manual_seed(0)
    epoch = LOOPS[loop](WORKS[work]())
    epoch()  # the first one fills caches
    return epoch


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    print(f"one thread, {pairs} pairs\n{'':17} {'time':>5} {'(low to high)':18} {'peak':>6}")
    for work in WORKS:
        for row in rows(work, pairs):
            print(row, flush=True)


if __name__ == "__main__":
    main()
