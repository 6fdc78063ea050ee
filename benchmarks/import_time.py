"""What does `import gradwright` cost over `import torch`? The target is 50 ms at most.

Fresh processes, without gradwright and with it, in turns: what else the machine does falls on both.
The public names are loaded at first use, so they have a row of their own.
Run it with the number of rounds: `python -m benchmarks.import_time 15`.
"""

import statistics
import subprocess
import sys

ROUNDS = 9
STATEMENTS = {
    "import torch": "import torch",
    "and gradwright": "import torch, gradwright",
    "and its public names": "import torch; from gradwright import *",
}
PROGRAM = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""


def milliseconds(statement: str) -> float:
    """The time that a fresh interpreter needs for `statement`."""
    program = PROGRAM.format(statement=statement)
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return 1000 * float(result.stdout)


def measure(rounds: int) -> dict[str, list[float]]:
    """The times of each statement, one per round."""
    for statement in STATEMENTS.values():
        milliseconds(statement)  # fills the file cache and __pycache__
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(rounds):
        for name, statement in STATEMENTS.items():
            times[name].append(milliseconds(statement))
    return times


def main() -> None:
    """Prints medians, the medians of the differences within a round, and the ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    times = measure(rounds)
    bare = times["import torch"]
    print(f"medians of {rounds} rounds      ms   over torch (at most 50)   ratio")
    for name, ours in times.items():
        extra = statistics.median(b - a for a, b in zip(bare, ours, strict=True))
        ratio = statistics.median(ours) / statistics.median(bare)
        print(f"{name:20} {statistics.median(ours):8.1f} {extra:25.1f} {ratio:7.3f}")


if __name__ == "__main__":
    main()
