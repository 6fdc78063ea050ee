"""How near does accumulation come to the whole window in one piece, in our loop and in others'?

An epoch of 5 micro-batches, 4 to a window: the last window has 1. What each library gives its
optimizer is compared with the gradient of the mean over all predicted tokens of the window, from
one padded forward in float64 ("error") and in float32 ("error32"): ‖update - exact‖ / ‖exact‖.
"ratio" is ‖update‖ / ‖exact‖, a wrong length of step; where "cosine" is not 1, the direction is
wrong too. Row "in one piece" is what float32 itself is off by: 1e-6 is as good as exact.

Read it so. With as many tokens in each micro-batch, only factors are wrong: 0.25 is a last window
divided by 4 although it has 1 micro-batch; 4.00 is a full window that nobody divided; 0.80 has the
first token of each sequence in the count, which GPT-2 never predicts. With ragged counts a mean of
means also turns the direction. "no step" is a window that its epoch never steps: Ignite adds its
gradients to the next epoch's first window, and after the last epoch to nothing.

Models are in train mode with dropout 0, see `_accumulation_models`; loops in `_accumulation_peers`.
"""

import argparse
import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import torch
from torch import Tensor

from benchmarks._accumulation_exact import distance, exact
from benchmarks._accumulation_models import MODELS, Example
from benchmarks._accumulation_peers import LIBRARIES

SIZE = 4
COUNTS = {"equal": (4, 4, 4, 4, 4), "ragged": (1, 6, 2, 5, 3)}
"""Predicted tokens of each micro-batch."""

_PACKAGES = {"Ignite": "pytorch-ignite"}
"""Of libraries that are called otherwise."""

_COLUMNS = f"{'error':>8} {'error32':>8} {'ratio':>7} {'cosine':>7}"


def rows(model_name: str, counts: Sequence[int], libraries: Sequence[str]) -> Iterator[str]:
    """A line for float32 in one piece, and one for each of the libraries."""
    kind = MODELS[model_name]
    torch.manual_seed(0)
    model = kind.make().train()
    examples = kind.examples(counts)
    whole = [
        [exact(kind, model, window, dtype) for window in _windows(examples)]
        for dtype in (torch.float64, torch.float32)
    ]
    yield _row("in one piece", whole[1], whole)
    for name in libraries:
        yield _row(name, LIBRARIES[name](kind, copy.deepcopy(model), examples, SIZE), whole)


def _windows(examples: Sequence[Example]) -> list[Sequence[Example]]:
    return [examples[start : start + SIZE] for start in range(0, len(examples), SIZE)]


def _row(name: str, updates: Sequence[Tensor], whole: Sequence[Sequence[Tensor]]) -> str:
    """Lists of updates per window; `whole` has one in float64 and one in float32."""
    cells = [
        _cell(update, in64, in32)
        for update, in64, in32 in zip(updates, *whole, strict=False)  # a peer may step less often
    ]
    cells += [f"{'no step':>8}"] * (len(whole[0]) - len(updates))
    return f"  {name:13} {'   '.join(cells)}"


def _cell(update: Tensor, in64: Tensor, in32: Tensor) -> str:
    found = distance(update, in64)
    error32 = distance(update, in32).error
    return f"{found.error:8.1e} {error32:8.1e} {found.ratio:7.4f} {found.cosine:7.4f}"


def main() -> None:
    """Prints the table."""
    arguments = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # the libraries say much about devices and progress
    print(_versions(arguments.libraries))
    for what, counts in COUNTS.items():
        print(f"\n{what} counts of predicted tokens: {', '.join(map(str, counts))}")
        print(f"  {'':13} {'full window, 4 micro-batches':36}last window, 1 micro-batch")
        print(f"  {'':13} {_COLUMNS}   {_COLUMNS}")
        for name in arguments.models:
            print(name)
            for row in rows(name, counts, arguments.libraries):
                print(row, flush=True)


def _versions(libraries: Sequence[str]) -> str:
    others = [_PACKAGES.get(name, name.lower()) for name in libraries]
    packages = dict.fromkeys(["torch", "transformers", *others])
    return ", ".join(f"{name} {version(name)}" for name in packages)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    return parser.parse_args()


if __name__ == "__main__":
    main()
