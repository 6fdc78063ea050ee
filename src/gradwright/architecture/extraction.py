"""One level of CGC and PLE: shared experts, experts of each task, gates over both."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gradwright.architecture.making import (
    MakeGate,
    MakeModule,
    check_number,
    make_gates,
    make_modules,
)
from gradwright.architecture.mixture import check_same_shape, gate_weights, mix, stack_experts
from gradwright.architecture.tasks import TaskModules, check_tasks


class ExtractionLevel(NamedTuple):
    """What one level is made of.

    Args:
        expert: makes one expert.
        gate: makes one gate, given the number of its outputs; the softmax is added here.
        n_shared: how many experts all tasks share.
        n_task: how many experts each task has; an integer, or a mapping from task to integer.
    """

    expert: MakeModule
    gate: MakeGate
    n_shared: int
    n_task: int | Mapping[str, int]


class Extraction(nn.Module):
    """The modules of one level; `with_shared_gate` in all levels but the last."""

    def __init__(
        self, level: ExtractionLevel, tasks: Sequence[str], with_shared_gate: bool
    ) -> None:
        n_task = _numbers(level.n_task, tasks)
        check_number("n_shared", level.n_shared)
        super().__init__()
        made = iter(make_modules("expert", level.expert, level.n_shared + sum(n_task)))
        self.shared = nn.ModuleList(next(made) for _ in range(level.n_shared))
        self.own = TaskModules(
            {
                task: nn.ModuleList(next(made) for _ in range(n))
                for task, n in zip(tasks, n_task, strict=True)
            }
        )
        widths = [n + level.n_shared for n in n_task]
        all_experts = [level.n_shared + sum(n_task)] if with_shared_gate else []
        gates = make_gates("gate", level.gate, widths + all_experts)
        self.gates = TaskModules(dict(zip(tasks, gates, strict=False)))
        self.shared_gate = gates[-1] if with_shared_gate else None

    def experts(
        self, inputs: Mapping[str, object], shared_input: object
    ) -> tuple[dict[str, Tensor], Tensor]:
        """What the experts of the tasks in `inputs`, and the shared ones, make of their inputs.

        Each is [batch, expert, *feature]. One tensor per task: in a tensor of all experts, autograd
        would see every task's experts behind every output.
        """
        own = {
            task: stack_experts([expert(read) for expert in self.own[task].children()])
            for task, read in inputs.items()
        }
        shared = stack_experts([expert(shared_input) for expert in self.shared])
        check_same_shape("expert", [features[:, 0] for features in [*own.values(), shared]])
        return own, shared

    def mixed(self, task: str, read: object, own: Tensor, shared: Tensor) -> Tensor:
        """The task's mixture of its own experts and the shared ones, [batch, *feature].

        Its gate reads `read`.
        """
        experts = torch.cat([own, shared], dim=1)
        name = f"gates[{task!r}]"
        return mix(gate_weights(self.gates[task], read, experts.shape[1], name), experts)

    def mixed_for_all(self, read: object, own: Mapping[str, Tensor], shared: Tensor) -> Tensor:
        """The shared gate's mixture of all experts, [batch, *feature]."""
        assert self.shared_gate is not None
        experts = torch.cat([*own.values(), shared], dim=1)
        return mix(gate_weights(self.shared_gate, read, experts.shape[1], "shared_gate"), experts)

    def parts(self, with_experts: Iterable[str], with_gates: Iterable[str]) -> list[nn.Module]:
        """What is shared, the experts of some tasks, the gates of some tasks."""
        gate = [] if self.shared_gate is None else [self.shared_gate]
        experts = [self.own[task] for task in with_experts]
        return [self.shared, *gate, *experts, *(self.gates[task] for task in with_gates)]


def _numbers(n_task: int | Mapping[str, int], tasks: Sequence[str]) -> list[int]:
    """How many experts each task has."""
    if not isinstance(n_task, Mapping):
        check_number("n_task", n_task)
        return [n_task] * len(tasks)
    check_tasks(n_task, tasks, "n_task")
    missing = [task for task in tasks if task not in n_task]
    if missing:
        raise ValueError(f"`n_task` needs a number for every task: {missing[0]!r} has none.")
    for task in tasks:
        check_number(f"n_task[{task!r}]", n_task[task])
    return [n_task[task] for task in tasks]
