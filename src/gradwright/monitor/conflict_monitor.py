"""`ConflictMonitor`: how the tasks' gradients agree in each layer, step after step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from gradwright.engine.errors import TaskMismatch
from gradwright.engine.losses import Losses, read_losses
from gradwright.monitor.curve import Curve
from gradwright.monitor.gradients import layer_gramians
from gradwright.monitor.layers import layers_of
from gradwright.monitor.plot import plotted
from gradwright.monitor.saving import loaded_snapshots, loaded_summaries, state_of
from gradwright.monitor.snapshot import Snapshot
from gradwright.monitor.summary import Summary, empty_summary
from gradwright.monitor.table import LayerRow, PairRow, as_text, layer_rows, pair_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ConflictMonitor:
    """Records cosines and norms of the tasks' gradients, for each layer that tasks share.

    A recorded step costs one more backward per task, and holds K gradients at a time; the others
    cost nothing. With K tasks a training takes about 1 + 2 K / (3 `every`) of the time it took
    (with `every=20`: 1.12 for 3 tasks, 1.27 for 8; benchmarks/conflict_monitor.py).
    No `.grad` and no random state changes, and the graph is kept for the backward that follows.
    As with any backward, hooks on tensors run, and so does the forward of checkpointed blocks.

    A layer is shown once two tasks have reached it: heads are left out. A task that is absent
    (None), does not reach a layer, or whose gradient there is not finite, has NaN there.

    Args:
        model: Its layers are the modules that own parameters themselves, read once. Or groups of
            parameters by name, each of which is one layer.
        every: Record the first call of `watch`, and then one in so many.
        keep: How many recorded steps are kept whole, as `snapshots`: 8 × layers × tasks² bytes
            each. The table covers all steps, and the picture the last 10,000 recorded ones.

    Raises:
        TypeError: `model` is neither a module nor groups of parameters.
        ValueError: There is nothing to train, or `every` or `keep` is not positive.

    Example:
        >>> import torch
        >>> model = torch.nn.Linear(2, 2, bias=False)
        >>> monitor = ConflictMonitor({"both": model.parameters()})
        >>> up, across = model(torch.eye(2))
        >>> _ = monitor.watch({"up": up.sum(), "down": -up.sum(), "across": across.sum()})
        >>> monitor.latest.cosines["both"]
        tensor([[ 1., -1.,  0.],
                [-1.,  1.,  0.],
                [ 0.,  0.,  1.]], dtype=torch.float64)
    """

    def __init__(
        self,
        model: nn.Module | Mapping[str, Iterable[Tensor]],
        *,
        every: int = 20,
        keep: int = 100,
    ) -> None:
        for name, value in (("every", every), ("keep", keep)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` is {value!r}: give a number of steps, 1 or more.")
        self._layers = layers_of(model)
        self.every = every
        self.tasks: tuple[str, ...] = ()
        self.snapshots: deque[Snapshot] = deque(maxlen=keep)
        self._calls = 0
        self._summaries: dict[str, Summary] = {}
        self._curve = Curve()

    def watch(self, losses: Losses) -> Snapshot | None:
        """Record this step if it is its turn; call it before the backward.

        Args:
            losses: One scalar per task, by name or in order, or one tensor [task]; None for a
                task that is absent from this batch.

        Returns:
            What was recorded; None where it was not the turn of this step.

        Raises:
            LossError: There is no loss, or one is no scalar, has no graph, is not finite or
                repeated.
            TaskMismatch: The tasks are not those of the first recorded step.
            SharedError: No loss reaches any of the layers.
        """
        if self._calls % self.every:
            self._calls += 1
            return None
        read = read_losses(losses)
        self._check_tasks(read.names)
        gramians = layer_gramians(read, self._layers)
        snapshot = self._record(read.names, gramians)
        self._calls += 1
        return snapshot

    @property
    def latest(self) -> Snapshot:
        """The last recorded step.

        Raises:
            RuntimeError: Nothing is recorded.
        """
        self._check_recorded()
        return self.snapshots[-1]

    def table(self) -> list[LayerRow]:
        """One row of numbers for each shared layer, over all recorded steps."""
        return layer_rows(self._summaries, self.tasks)

    def pairs(self) -> list[PairRow]:
        """One row for each shared layer and pair of tasks, the least mean cosine first."""
        return pair_rows(self._summaries, self.tasks)

    def scalars(self) -> dict[str, float]:
        """The last recorded step for a logger: "conflict/LAYER/least_cosine" and so on.

        The others are "mean_cosine" and "norm_ratio"; where no two tasks met there is no entry.

        Raises:
            RuntimeError: Nothing is recorded.
        """
        return {
            f"conflict/{layer}/{name}": value
            for layer, spread in self.latest.spreads.items()
            for name, value in spread._asdict().items()
            if not isnan(value)
        }

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Heat maps of layers by time: least and mean cosine of all pairs, and the norm ratio.

        Args:
            path: Where to save it, as well.

        Raises:
            RuntimeError: No two tasks have met in a layer yet.
            ModuleNotFoundError: Matplotlib is missing.
        """
        self._check_recorded()
        if not self._summaries:
            raise RuntimeError(
                "no two tasks have reached the same layer yet, so there is nothing to plot: give "
                "ConflictMonitor the module that the tasks share."
            )
        steps = list(self._curve.steps)
        figure = plotted(steps, list(self._summaries), self._curve.values, len(self.tasks))
        if path is not None:
            figure.savefig(path)
        return figure

    def state_dict(self) -> dict[str, Any]:
        """Everything recorded, as tensors, lists and numbers; for `torch.save`."""
        return state_of(
            self._calls, self._layers, self.tasks, self._summaries, self.snapshots, self._curve
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Raises:
            ValueError: It is of a monitor with other layers.
        """
        if list(state["layers"]) != list(self._layers):
            raise ValueError(
                f"the state is of {len(state['layers'])} layers {_some(state['layers'])}, this "
                f"monitor has {len(self._layers)} layers {_some(self._layers)}: load it into a "
                "monitor of the same model or groups."
            )
        self._calls = state["calls"]
        self.tasks = tuple(state["tasks"])
        self._summaries = loaded_summaries(state)
        self.snapshots = deque(loaded_snapshots(state), maxlen=self.snapshots.maxlen)
        self._curve.load(state["steps"], state["curve"])

    def __str__(self) -> str:
        if not self.snapshots:
            return "nothing recorded yet: call `watch(losses)` before the backward"
        head = (
            f"{len(self.tasks)} tasks, {len(self._summaries)} of {len(self._layers)} layers "
            f"shared, last recorded at step {self.latest.step:,}"
        )
        return f"{head}\n{as_text(self._summaries, self.tasks)}" if self.table() else head

    def _record(self, tasks: tuple[str, ...], gramians: Mapping[str, Tensor]) -> Snapshot:
        self.tasks = tasks
        for layer, gramian in gramians.items():
            if layer not in self._summaries and int((~gramian.diagonal().isnan()).sum()) > 1:
                self._summaries[layer] = empty_summary(len(tasks))
        shared = {layer: gramians[layer] for layer in self._summaries}
        for layer, gramian in shared.items():
            self._summaries[layer].add(gramian)
        snapshot = Snapshot(self._calls, tasks, shared)
        self.snapshots.append(snapshot)
        self._curve.add(self._calls, snapshot.spreads.values())
        return snapshot

    def _check_tasks(self, found: tuple[str, ...]) -> None:
        if self.tasks and found != self.tasks:
            raise TaskMismatch(
                f"`losses` has the tasks {_some(found)}, the first recorded step had "
                f"{_some(self.tasks)}: give the same tasks in the same order, and None for one "
                "that is absent."
            )

    def _check_recorded(self) -> None:
        if not self.snapshots:
            raise RuntimeError("nothing is recorded yet: call `watch(losses)` before the backward.")


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return repr(listed if len(listed) <= 6 else [*listed[:5], "…", listed[-1]])
