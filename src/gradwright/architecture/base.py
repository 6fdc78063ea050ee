"""What every multi-task architecture offers."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from torch import Tensor, nn

from gradwright.architecture.tasks import check_tasks, head_modules


class Architecture(nn.Module, ABC):
    """A model that gives one output per task.

    Inputs are handed on to your modules as they are: tensors, tuples, dicts. Features and outputs
    have the batch as their first dimension.

    Args:
        heads: the module of each task that turns features into its output.

    Raises:
        TypeError: `heads` is no mapping from names to modules.
        ValueError: there is no task.
    """

    def __init__(self, heads: Mapping[str, nn.Module]) -> None:
        modules = head_modules(heads)
        super().__init__()
        self.heads = modules

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of the tasks, in the order of `heads`."""
        return tuple(self.heads)

    def forward(self, inputs: object) -> dict[str, Tensor]:
        """The output of every task for one input; what tasks share is computed once."""
        return self.outputs(inputs, self.tasks)

    def each(self, inputs: Mapping[str, object]) -> dict[str, Tensor]:
        """The outputs of tasks that have an input of their own each.

        For every input only what its task needs is computed; tasks that are given the same object
        share the computation. Batches may be of different sizes, and tasks may be left out.

        Raises:
            TypeError: `inputs` is no mapping.
            ValueError: `inputs` is empty or names a task that there is not.
        """
        _check_inputs(inputs, self.tasks)
        found: dict[str, Tensor] = {}
        for tasks in _same_input(inputs):
            found |= self.outputs(inputs[tasks[0]], tasks)
        return {task: found[task] for task in inputs}

    def shared_parameters(self) -> list[nn.Parameter]:
        """The parameters that the outputs of two or more tasks depend on."""
        uses = self._uses()
        return [parameter for parameter in self.parameters() if uses[parameter] > 1]

    def task_parameters(self, task: str) -> list[nn.Parameter]:
        """The parameters that only the output of `task` depends on.

        Raises:
            ValueError: there is no such task.
        """
        check_tasks([task], self.tasks, "task")
        uses = self._uses()
        return [parameter for parameter in _parameters(self.path(task)) if uses[parameter] == 1]

    @abstractmethod
    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input.

        For whoever writes an architecture; to use one, call it, or `each`.
        """

    @abstractmethod
    def path(self, task: str) -> Iterable[nn.Module]:
        """The modules that the output of `task` depends on in training, its head included."""

    def _uses(self) -> Counter[nn.Parameter]:
        """For each parameter, how many tasks depend on it."""
        return Counter(p for task in self.tasks for p in _parameters(self.path(task)))


def _check_inputs(inputs: Mapping[str, object], tasks: Sequence[str]) -> None:
    if not isinstance(inputs, Mapping):
        raise TypeError(
            f"`each` needs a mapping from task to input: got {type(inputs).__name__}. "
            "For one input to all tasks call the model itself."
        )
    if not inputs:
        raise ValueError("`each` needs the input of at least one task: got an empty mapping.")
    check_tasks(inputs, tasks, "each")


def _same_input(inputs: Mapping[str, object]) -> list[list[str]]:
    """The tasks, those with the same object as input together."""
    groups: dict[int, list[str]] = {}
    for task, value in inputs.items():
        groups.setdefault(id(value), []).append(task)
    return list(groups.values())


def _parameters(modules: Iterable[nn.Module]) -> list[nn.Parameter]:
    """All parameters of the modules, each once."""
    return list(dict.fromkeys(p for module in modules for p in module.parameters()))
