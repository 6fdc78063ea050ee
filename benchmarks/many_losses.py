"""What does a step of many losses cost us, and what our peers, over `sum(losses).backward()`?

Time is CPU time of a whole step, forward included, one thread, contender and plain step in turns in
one process: the median over the pairs. Peak is the memory that a step needs at most (see `_peak`).
All who need gradients run the same method, so its solver is on both sides; see `_peers` for what
LibMTL and TorchJD were given. Goals: (1 + 2K) / 3 with rows and (3 + 2K) / 3 without, plus 15 %.

`python -m benchmarks.many_losses --workloads W1 --tasks 8 --json figures.json` adds to the file's
figures, and prints the table of all that are in it; `--workloads` without a name measures nothing.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks._contenders import CONTENDERS, plain, step_of
from benchmarks._goals import Figure
from benchmarks._pairs import ratios
from benchmarks._peak import clear, peak
from benchmarks._peers import Step
from benchmarks._table import table
from benchmarks._workloads import WORKLOADS

Condition = Callable[[], AbstractContextManager[None]]


class Turns:
    """One step of whoever's turn it is."""

    def __init__(self, workload: str, n_tasks: int) -> None:
        self._make = lambda: WORKLOADS[workload](n_tasks)
        self._plain = self._now = self._step(plain, "")

    def __call__(self) -> None:
        self._now()

    def of(self, name: str, method: str) -> Condition:
        """Within the block it is the turn of this contender, which has a model of its own."""
        step = self._step(lambda work, method: step_of(name, work, method), method)
        step()  # the first one fills caches

        @contextmanager
        def turn() -> Iterator[None]:
            self._now = step
            yield
            self._now = self._plain

        return turn

    def _step(self, make: Callable[..., Step], method: str) -> Callable[[], None]:
        torch.manual_seed(0)
        work = self._make()
        step = make(work, method)

        def cleared() -> None:
            clear(work)
            step()
            clear(work)

        return cleared


def measure(
    workload: str, n_tasks: int, method: str, names: Sequence[str], pairs: int
) -> list[Figure]:
    """The figures of one cell; contenders that cannot run are left out, and said."""
    turns = Turns(workload, n_tasks)
    turns()
    conditions = dict(_runnable(turns, names, method))
    seconds, spread = ratios(turns, conditions, pairs, repeats=1)
    base = peak(workload, n_tasks, "plain", method)
    _say(f"{workload} {n_tasks}: plain step {seconds:.3f} s, {base:.0f} MB")
    figures = []
    for name, (low, median, high) in spread.items():
        ratio = peak(workload, n_tasks, name, method) / base
        figures.append(Figure(workload, n_tasks, method, name, low, median, high, ratio))
        _say(f"{workload} {n_tasks} {name}: {median:.2f} ({low:.2f} to {high:.2f}), {ratio:.2f}")
    return figures


def _runnable(turns: Turns, names: Sequence[str], method: str) -> Iterator[tuple[str, Condition]]:
    for name in names:
        try:
            yield name, turns.of(name, method)
        except ImportError as error:
            _say(f"{name} cannot run {method}: {error}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def read(file: Path) -> list[Figure]:
    """The figures kept in a file; none if there is no file yet."""
    if not file.exists():
        return []
    return [Figure(**entry) for entry in json.loads(file.read_text(encoding="utf-8"))]


def merged(old: Sequence[Figure], new: Sequence[Figure]) -> list[Figure]:
    """All figures; where both have one, the new one."""
    return list({(f.workload, f.n_tasks, f.method, f.name): f for f in [*old, *new]}.values())


def main() -> None:
    """Measures cell by cell, then prints the table."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    figures = read(arguments.json) if arguments.json else []
    for workload in arguments.workloads:
        for n_tasks in arguments.tasks:
            new = measure(
                workload, n_tasks, arguments.method, arguments.contenders, arguments.pairs
            )
            figures = merged(figures, new)
            if arguments.json:
                kept = json.dumps([asdict(figure) for figure in figures], indent=1)
                arguments.json.write_text(kept, encoding="utf-8")
    print("\n".join(table(figures)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--tasks", nargs="+", type=int, default=[2, 8, 20])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--method", choices=["MGDA", "PCGrad", "UPGrad"], default="MGDA")
    parser.add_argument("--json", type=Path, help="a file that keeps figures from run to run")
    return parser.parse_args()


if __name__ == "__main__":
    main()
