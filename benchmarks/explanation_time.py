"""How long does the explanation of a crash take on a graph of 10,000 nodes? At most 100 ms.

A loop of 5,000 steps of a recurrence; then the same mistake at its beginning that most programs
make somewhere: a second backward, a tensor changed in place, recording turned off. The time is that
of `diagnose` after the crash, in the best of five runs, the sources already read.
"""

import sys
import time
from collections.abc import Callable

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.diagnose import diagnose
from gradwright.doctor.journal import Journal, UserCode

STEPS = 5_000
GOAL = 100.0


def recurrence(weight: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """Two nodes per step."""
    for _ in range(STEPS):
        state = weight * state
        state = torch.sin(state)
    return state


def second_backward(weight: torch.Tensor) -> None:
    encoded = weight.exp()
    for _ in range(2):
        loss = recurrence(weight, encoded).sum()
        loss.backward()


def changed_in_place(weight: torch.Tensor) -> None:
    encoded = weight.exp()
    loss = recurrence(weight, encoded).sum()
    encoded.add_(1)
    loss.backward()


def recording_off(weight: torch.Tensor) -> None:
    with torch.no_grad():
        encoded = recurrence(weight, weight)
    loss = recurrence(torch.ones(4), encoded).sum()
    loss.backward()


def explain(program: Callable[[torch.Tensor], None]) -> tuple[float, str]:
    """Seconds for the explanation, and its code."""
    journal = Journal(UserCode(), lambda error: sys.exit(repr(error)))
    weight = torch.nn.Parameter(torch.ones(4))
    try:
        journal.start(sys._getframe())
        program(weight)
    except RuntimeError as error:
        journal.stop()
        failures: list[BaseException] = []
        start = time.process_time()
        found = diagnose(Crash(error, journal), failures.append)
        seconds = time.process_time() - start
        assert not failures, failures
        return seconds, found[0].code if found else "none"
    raise AssertionError("the program was meant to die")


def main() -> None:
    """Prints milliseconds per mistake."""
    torch.set_num_threads(1)
    print(f"{'mistake':18} {'rule':6} {'ms':>7}   goal {GOAL:.0f}")
    for program in (second_backward, changed_in_place, recording_off):
        runs = [explain(program) for _ in range(5)]
        seconds, code = min(runs)
        print(f"{program.__name__:18} {code:6} {1000 * seconds:7.1f}")


if __name__ == "__main__":
    main()
