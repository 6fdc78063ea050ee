"""A window of several losses: their gradients are weighed once, on those of the whole window."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.amp import GradScaler

from gradwright.engine import Backward, Weighting, backward
from gradwright.engine.plan.shared import Grouped, Shared
from gradwright.engine.weights.heads import Heads
from gradwright.loops.accumulation.counts import Count, Counts, power_of_two
from gradwright.loops.accumulation.guard import Guard
from gradwright.loops.accumulation.mean import WindowMean
from gradwright.loops.accumulation.one_loss import added, divided
from gradwright.loops.accumulation.parameters import Trained
from gradwright.loops.accumulation.rows import Rows
from gradwright.loops.errors import WindowError


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the losses of a window are weighed: see `gradwright.backward`."""

    weighting: Weighting | None = None
    shared: Shared | Grouped = None
    heads: Heads = "paper"
    scaler: GradScaler | None = None


@dataclass(slots=True)
class _Task:
    """The sums of one task."""

    counts: Counts = field(default_factory=Counts)
    sum: Tensor | None = None
    divisor: Count = 1.0


class ManyLosses:
    """One gradient per task and parameter, kept until the window is closed.

    Args:
        trained: The parameters.
        size: How many micro-batches are expected.
        tasks: The names of the losses.
        how: The weighting, and what goes with it.
    """

    def __init__(self, trained: Trained, size: int, tasks: tuple[str, ...], how: Weighing) -> None:
        self._size = size
        self._how = how
        self._guard = Guard(trained)
        self._tasks = {task: _Task() for task in tasks}
        self._rows = Rows(tasks)

    def check(self) -> None:
        """Refuse to go on where others changed the parameters."""
        self._guard.check_parameters()

    def check_tasks(self, losses: Mapping[str, Tensor | None]) -> None:
        """Refuse other tasks than those of the first micro-batch."""
        if tuple(losses) != tuple(self._tasks):
            raise WindowError(
                f"this micro-batch has the losses {_listed(losses)}, the window began with "
                f"{_listed(self._tasks)}: give the same names in the same order, and None for a "
                "task that is absent."
            )

    def backward(self, losses: Mapping[str, Tensor], counts: Mapping[str, Count]) -> None:
        """Add the gradients of the losses that are there."""
        for name, task in self._tasks.items():
            if name in losses and task.sum is None:
                task.divisor = power_of_two(counts[name] * self._size)
        scaled = {
            name: divided(losses[name], task.divisor) if name in losses else None
            for name, task in self._tasks.items()
        }
        if losses:
            self._rows.add(scaled, self._scale(next(iter(losses.values()))))
        for name, loss in losses.items():
            self._tasks[name].counts.add(counts[name])
            self._tasks[name].sum = added(self._tasks[name].sum, loss)

    def close(self, micro_batches: int) -> WindowMean:
        """Weigh the gradients of the means, and add the result to `.grad`.

        Tasks without a term in the window count as absent.
        """
        totals = {
            name: task.counts.total(f"the count of {name!r}") for name, task in self._tasks.items()
        }
        if not any(totals.values()):
            raise WindowError(
                "the counts of all losses of the window add up to 0: there is nothing to take a "
                "mean of. No gradient has changed. Leave the step out, or make the window longer."
            )
        step = self._step(totals)
        return WindowMean(step.losses, totals, micro_batches, step)

    def discard(self) -> None:
        """Nothing was written yet."""

    def _step(self, totals: Mapping[str, float]) -> Backward:
        sums = {n: t.sum for n, t in self._tasks.items() if totals[n] and t.sum is not None}
        means = {n: sums[n] / totals[n] if n in sums else None for n in self._tasks}
        scale = self._scale(next(iter(sums.values())))
        factors = {n: float(self._tasks[n].divisor) / totals[n] / scale for n in sums}
        how = self._how
        with self._rows.hooks_have_run():
            return backward(
                self._rows.mean_losses(means, factors),
                weighting=how.weighting,
                shared=how.shared,
                heads=how.heads,
                scaler=how.scaler,
                route="rows",
            )

    def _scale(self, like: Tensor) -> float:
        scaler = self._how.scaler
        return (
            1.0 if scaler is None else float(scaler.scale(like.new_ones((), dtype=torch.float32)))
        )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(repr, names))
