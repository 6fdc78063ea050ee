"""Progressive layered extraction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.extraction import Extraction, ExtractionLevel
from gradwright.architecture.gating import GateInput, check_gate_input, modules_of, the_input_itself
from gradwright.architecture.making import check_list


class _Streams(NamedTuple):
    """What a level hands on: features of each task, and shared ones."""

    own: Mapping[str, object]
    shared: object


class PLE(Architecture):
    """Levels of CGC: between them each task, and what is shared, has features of its own.

    At each level, g_k = Σ_e w_k(g_k')_e E_e over the task's own experts and the shared ones, where
    g_k' is what the level below gave (the input at the lowest), read by the task's experts and
    gate. All levels but the last have a shared gate too, over the experts of all tasks and the
    shared ones: what it mixes is read by the shared experts and the shared gate above.
    So below the last level every expert is on the path of every task.

    Tang, Liu, Zhao and Gong, Progressive Layered Extraction (PLE): A Novel Multi-Task Learning
    (MTL) Model for Personalized Recommendations, RecSys 2020, section on progressive layered
    extraction, https://doi.org/10.1145/3383313.3412236. LibMTL has no shared gate: its shared
    experts run once per task, on that task's features; we follow the paper.

    Called with one input for all tasks, returns {task: output}. Experts give [batch, *feature].

    Args:
        levels: an `ExtractionLevel` for each level, the lowest first; gates above the lowest read
            features.
        heads: the module of each task.
        gate_input: from the input to what the gates of the lowest level read; the input itself if
            left out.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task, level or expert; when called: shapes that do not fit.

    Example:
        >>> import torch
        >>> def level(width):
        ...     return ExtractionLevel(
        ...         expert=lambda: nn.Sequential(nn.Linear(width, 8), nn.ReLU()),
        ...         gate=lambda n: nn.Linear(width, n),
        ...         n_shared=2,
        ...         n_task=1,
        ...     )
        >>> heads = {"income": nn.Linear(8, 1), "marital": nn.Linear(8, 1)}
        >>> model = PLE([level(3), level(8)], heads)
        >>> model(torch.randn(5, 3))["income"].shape
        torch.Size([5, 1])
    """

    def __init__(
        self,
        levels: Sequence[ExtractionLevel],
        heads: Mapping[str, nn.Module],
        gate_input: GateInput = the_input_itself,
    ) -> None:
        _check_levels(levels)
        check_gate_input(gate_input)
        super().__init__(heads)
        self.levels = nn.ModuleList(
            Extraction(level, self.tasks, with_shared_gate=number < len(levels))
            for number, level in enumerate(levels, 1)
        )
        self.gate_input = gate_input

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        features = _Streams(dict.fromkeys(self.tasks, inputs), inputs)
        read = self.gate_input(inputs)
        gates_read = _Streams(dict.fromkeys(self.tasks, read), read)
        for position, level in enumerate(self.levels):
            assert isinstance(level, Extraction)
            features = self._raised(position, level, features, gates_read, tasks)
            gates_read = features
        return {task: self.heads[task](features.own[task]) for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """The task's own modules, and below the last level the experts of all tasks."""
        for position, level in enumerate(self.levels):
            assert isinstance(level, Extraction)
            yield from level.parts(
                self._with_experts(position, [task]), self._with_experts(position + 1, [task])
            )
        yield from modules_of(self.gate_input)
        yield self.heads[task]

    def _raised(
        self,
        position: int,
        level: Extraction,
        features: _Streams,
        gates_read: _Streams,
        tasks: Sequence[str],
    ) -> _Streams:
        """What one level makes of the features of the level below."""
        needed = self._with_experts(position, tasks)
        own, shared = level.experts({task: features.own[task] for task in needed}, features.shared)
        mixed = {
            task: level.mixed(task, gates_read.own[task], own[task], shared)
            for task in self._with_experts(position + 1, tasks)
        }
        if level.shared_gate is None:
            return _Streams(mixed, None)
        return _Streams(mixed, level.mixed_for_all(gates_read.shared, own, shared))

    def _with_experts(self, position: int, tasks: Sequence[str]) -> Sequence[str]:
        """The tasks whose experts at this level are needed for the outputs of `tasks`."""
        return self.tasks if position < len(self.levels) - 1 else tasks


def _check_levels(levels: Sequence[ExtractionLevel]) -> None:
    check_list("levels", levels)
    for level in levels:
        if not isinstance(level, ExtractionLevel):
            raise TypeError(
                f"`levels` needs an `ExtractionLevel` per level: got {type(level).__name__}."
            )
