"""Does every architecture train with every weighting?

Small models (tests/architecture/models.py), three tasks: a number and two choices of a class, or
yes and no where an architecture is for steps. Each pair trains with Adam in the way that the method
is meant to be called: with its second batches, validation losses, groups of parameters, calls after
a step and after an epoch. It passes if all losses and gradients are finite, every trainable
parameter of the model and of the method has a gradient in every step, and one that is not 0 in
some.

    ✓ trained    = trained, and ended where the plain sum of the losses ends    ✗ failed
    0 trained, but the method made the gradient of some parameters 0 in every step
    – no such pair: the method combines gradients at features that all heads read

LibMTL, on 7 of its architectures and 26 methods: 24 of 182 pairs raise an error, and 6 more are
equal weighting under another name.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from benchmarks._matrix_training import Outcome, train
from docs.catalogue import Method, methods
from tests.architecture.models import MODELS

Row = dict[str, Outcome]
"""By architecture."""


def rows(chosen: Sequence[Method], steps: int) -> Iterator[tuple[str, Row]]:
    """Each method's name and what became of it."""
    for method in chosen:
        yield method.name, {name: train(name, method, steps) for name in MODELS}


def title() -> Iterator[str]:
    """The names of the architectures, each with the number of its column."""
    for number, name in enumerate(MODELS, 1):
        yield f"{number:>2} {name}"


def line(name: str, row: Row) -> str:
    """A mark for each architecture."""
    return f"{name:15}" + "".join(f"{outcome.mark:>3}" for outcome in row.values())


def causes(name: str, row: Row) -> Iterator[str]:
    """A line for each pair that failed or left parameters without a gradient."""
    for architecture, outcome in row.items():
        if outcome.failure or outcome.still:
            cause = outcome.failure or f"0 at {', '.join(outcome.still)}"
            yield f"{outcome.mark} {architecture} × {name}: {cause}"


def summary(counts: Counter[str]) -> str:
    """How many pairs of each kind."""
    trained = counts["✓"] + counts["="] + counts["0"]
    return (
        f"{trained + counts['✗']} pairs: {trained} trained, {counts['=']} of them as the plain sum "
        f"does, {counts['0']} with parameters at 0; {counts['✗']} failed."
    )


def main() -> int:
    """Prints the matrix; exit status 1 if a pair failed."""
    everything = {method.name: method for method in methods()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", choices=everything, nargs="+", help="these methods")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(*title(), sep="\n")
    print(f"\n{'':15}" + "".join(f"{number:3}" for number in range(1, len(MODELS) + 1)))
    start, counts, lines = time.process_time(), Counter[str](), list[str]()
    for name, row in rows([everything[n] for n in arguments.only or everything], arguments.steps):
        print(line(name, row), flush=True)
        counts.update(outcome.mark for outcome in row.values())
        lines += causes(name, row)
    print("", *lines, summary(counts), sep="\n")
    print(f"{time.process_time() - start:.0f} s of CPU time, {arguments.steps} steps each")
    return 1 if counts["✗"] else 0


if __name__ == "__main__":
    sys.exit(main())
