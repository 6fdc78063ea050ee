"""Modules by task, and the check of tasks that a user names."""

from collections.abc import Iterable, Iterator, Mapping

from torch import nn

from gradwright.architecture.making import check_module


class TaskModules(nn.Module):
    """One module per task, registered under the task's name.

    Where torch takes no such name, because of a dot or because modules have an attribute of that
    name (a task called "type" or "train"), the parameters' names have underscores.
    """

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self._names: dict[str, str] = {}
        for task, module in modules.items():
            name = task.replace(".", "_")
            while hasattr(self, name):
                name += "_"
            self.add_module(name, module)
            self._names[task] = name

    def __getitem__(self, task: str) -> nn.Module:
        return self.get_submodule(self._names[task])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> Iterator[tuple[str, nn.Module]]:
        """Pairs of task and module."""
        return ((task, self[task]) for task in self)


def head_modules(heads: Mapping[str, nn.Module]) -> TaskModules:
    """The heads, checked.

    Raises:
        TypeError: `heads` is no mapping from names to modules.
        ValueError: there is no task, or a name is empty.
    """
    if not isinstance(heads, Mapping):
        raise TypeError(
            f"`heads` needs to be a mapping from task to module: got {type(heads).__name__}. "
            'Write `heads={"income": nn.Linear(32, 1), ...}`.'
        )
    if not heads:
        raise ValueError("`heads` needs at least one task: got an empty mapping.")
    for task, head in heads.items():
        _check_name(task)
        check_module(f"heads[{task!r}]", head)
    return TaskModules(heads)


def check_tasks(tasks: Iterable[str], known: Iterable[str], argument: str) -> None:
    """Raises `ValueError` if one of `tasks` is not `known`."""
    known = list(known)
    for task in tasks:
        if task not in known:
            names = ", ".join(map(repr, known))
            raise ValueError(f"`{argument}` names the task {task!r}, but the tasks are {names}.")


def _check_name(task: object) -> None:
    if not isinstance(task, str):
        raise TypeError(
            f"`heads` needs strings as names of tasks: got {task!r}, of type "
            f"{type(task).__name__}. Write `str({task!r})`."
        )
    if not task:
        raise ValueError("`heads` needs names that are not empty: got ''.")
