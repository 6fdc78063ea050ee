"""What does the doctor cost a training step? Ratios of CPU time to the plain step.

`first steps`: operations are recorded. `steady`: only lines, engine calls and steps are.
`anomaly`: torch's anomaly mode without its NaN check, which records a stack per graph node.
The goals are for the steady state: below them, and always below anomaly mode.
`python -m benchmarks.doctor_overhead 9` makes nine pairs of each.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator

import torch

from benchmarks import _pairs
from benchmarks._training import Cells, Mlp, Transformer, training
from gradwright.doctor.journal import Journal, UserCode
from gradwright.doctor.journal.timeline import next_node_number

PAIRS = 7
REPEATS = {"MLP": 400, "LSTM cells": 8, "transformer": 4}
if hasattr(sys, "monitoring"):  # from Python 3.12 on
    GOALS = {"MLP": 1.1, "LSTM cells": 1.05, "transformer": 1.02}
else:
    GOALS = {"MLP": 1.5, "LSTM cells": 1.15, "transformer": 1.02}


Condition = Callable[[], contextlib.AbstractContextManager[object]]


def watched(step: Callable[[], None], steady: bool) -> Condition:
    """The journal around steps, before or after it has come to rest."""

    @contextlib.contextmanager
    def condition() -> Iterator[None]:
        failures: list[BaseException] = []
        user_code = UserCode()
        user_code.known.update({__file__: False, _pairs.__file__: False})
        journal = Journal(user_code, failures.append)
        if not steady:
            journal._rest_if_quiet = lambda: None  # type: ignore[method-assign]
        journal.start(None)
        for _ in range(8):
            step()
        assert journal._armed != steady
        try:
            yield
        finally:
            journal.stop()
        assert not failures
        assert journal.stack_of_node(journal.main.starts[-1]), "the lines were followed"

    return condition


def nodes_of(step: Callable[[], None]) -> int:
    """How many graph nodes a step makes."""
    before = next_node_number()
    step()
    return next_node_number() - before


def main() -> None:
    """Prints the table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    steps = {
        "MLP": training(Mlp(), torch.randn(64, 64)),
        "LSTM cells": training(Cells(), torch.randn(8, 75, 16)),
        "transformer": training(Transformer(), torch.randint(100, (16, 32))),
    }
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}, torch {torch.__version__}, {torch.get_num_threads()} thread")
    print(f"medians of {pairs} pairs (lowest to highest)")
    columns = "  ".join(f"{column:>18}" for column in ("first steps", "steady", "anomaly"))
    print(f"{'':12} {'nodes':>5} {'plain ms':>8}  {columns}   goal")
    for name, step in steps.items():
        plain, found = _pairs.ratios(
            step,
            {
                "first": watched(step, steady=False),
                "steady": watched(step, steady=True),
                "anomaly": lambda: torch.autograd.detect_anomaly(check_nan=False),
            },
            pairs,
            REPEATS[name],
        )
        cells = "  ".join(
            f"{mid:5.2f} ({low:.2f} to {high:.2f})" for low, mid, high in found.values()
        )
        size = f"{nodes_of(step):5} {1000 * plain:8.2f}"
        print(f"{name:12} {size}  {cells}   {GOALS[name]:.2f}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")  # anomaly mode says that it is slow
    main()
