"""What does watching conflicts cost?

A training step is the forward, the sum's backward and nothing else, of a trunk of three layers
with one head per task. "recorded" is a step whose gradients are recorded, "not its turn" one in
between, "every=20" the mean of 20 steps of which one is recorded. Each is a ratio to the step
without a monitor: CPU time, one thread, in turns in one process, the median over the pairs and the
lowest and the highest. A backward costs two forwards, so a recorded step should cost 1 + 2 K / 3.
"""

import argparse
from collections.abc import Callable, Iterator

import torch
from torch import nn

from benchmarks._turns import ratios_to
from gradwright.monitor import ConflictMonitor

_PERIOD = 20
_PLAIN = "not watched"
_NEVER = 10**9


def rows(n_tasks: int, pairs: int) -> Iterator[str]:
    """The lines for so many tasks."""
    train = _training(n_tasks)
    single = {_PLAIN: train(None), "recorded": train(1), "not its turn": train(_NEVER)}
    seconds, spread = ratios_to(_PLAIN, single, pairs, 2)
    _, period = ratios_to(_PLAIN, {_PLAIN: train(None), "every=20": train(_PERIOD)}, pairs, _PERIOD)
    expected = 1 + 2 * n_tasks / 3
    yield f"{n_tasks} tasks: {1000 * seconds:.1f} ms a step, 1 + 2 K / 3 = {expected:.2f}"
    for name, (low, median, high) in (spread | period).items():
        yield f"  {name:14} {median:6.3f} ({low:.3f} to {high:.3f})"


def _training(n_tasks: int) -> Callable[[int | None], Callable[[], None]]:
    """From how often it is watched to one step of the training."""
    torch.manual_seed(0)
    wide = [nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256)]
    trunk = nn.Sequential(*wide)
    heads = nn.ModuleList(nn.Linear(256, 1) for _ in range(n_tasks))
    model = nn.ModuleList([trunk, heads])
    inputs = torch.randn(512, 256)

    def train(every: int | None) -> Callable[[], None]:
        monitor = None if every is None else ConflictMonitor(model, every=every)

        def step() -> None:
            features = trunk(inputs)
            losses = [(head(features) - 1).square().mean() for head in heads]
            if monitor is not None:
                monitor.watch(losses)
            torch.stack(losses).sum().backward()
            model.zero_grad()

        step()  # the first one is recorded, whatever its turn
        if every == _PERIOD:
            for _ in range(_PERIOD - 1):
                step()
        return step

    return train


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=7)
    pairs = parser.parse_args().pairs
    torch.set_num_threads(1)
    print(f"one thread, {pairs} pairs")
    for n_tasks in (3, 8):
        for row in rows(n_tasks, pairs):
            print(row, flush=True)


if __name__ == "__main__":
    main()
