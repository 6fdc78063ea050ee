"""How much memory does the journal hold after a million steps?

Real steps first, each with a line journal, engine calls and optimizer steps; then the same kinds of
events given to the data structures directly, up to a million steps in all. The bytes are those
that Python allocated since the start (`tracemalloc` would slow it down: the process's own size is
read instead). `python -m benchmarks.journal_memory 1000` makes a thousand real steps.
"""

import sys
import weakref
from pathlib import Path

import torch

from benchmarks._training import Mlp, training
from gradwright.doctor.journal import Journal, UserCode
from gradwright.doctor.journal.operations import Freeze, Switch

REAL = 100_000
ALL = 1_000_000


def resident() -> float:
    """The process's memory in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def give_events(journal: Journal, step: int, owner: torch.optim.Optimizer) -> None:
    """What one more step would write down, with an operation record that never rests."""
    for turn in range(10):  # nodes at ten lines
        journal.main.move(journal.main.last + 1 + turn)
    journal.calls.log.append((step, 0, step, (step,), False, False, True, True, False, False))
    journal.optimizers.log.append((0, step, weakref.ref(owner)))
    for log in (journal.calls.log, journal.optimizers.log):
        log.trim()
    operations = journal.operations
    tensor = torch.empty(0)
    operations.add("mul", 0, tensor)
    operations.switches.append(Switch(False, 0))
    operations.freezes.append(Freeze(tensor, False, 0))
    operations.keep_in_bounds()


def main() -> None:
    """Prints the memory at each power of ten."""
    torch.set_num_threads(1)
    real = int(sys.argv[1]) if len(sys.argv) > 1 else REAL
    step = training(Mlp(), torch.randn(64, 64))
    step()
    owner = torch.optim.SGD([torch.ones(1)], lr=0.1)
    journal = Journal(UserCode(), lambda error: sys.exit(repr(error)))
    before = resident()
    journal.start(sys._getframe())
    print(f"{'steps':>10} {'MB held':>8}")
    for done in range(1, real + 1):
        step()
        if done in (10, 100, 1_000, 10_000, real):
            print(f"{done:10,} {resident() - before:8.1f}  real steps")
    journal.stop()
    for done in range(real + 1, ALL + 1):
        give_events(journal, done, owner)
        if done in (200_000, 500_000, ALL):
            print(f"{done:10,} {resident() - before:8.1f}  and events, all of it full")


if __name__ == "__main__":
    main()
