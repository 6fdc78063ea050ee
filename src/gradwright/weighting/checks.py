"""What a weighting is given, checked once, and brought to float64 on the CPU to compute with.

K×K problems are far too small for a GPU, and float32 loses half of the digits in the squares.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Weighting
from gradwright.weighting.arguments import preference_vector


def read_gramian(gramian: Tensor) -> Tensor:
    """The Gramian [task, task] in float64 on the CPU.

    Raises:
        ValueError: it is not a square matrix, or the inner products of some tasks are not finite.
    """
    if gramian.ndim != 2 or gramian.shape[0] != gramian.shape[1] or gramian.shape[0] == 0:
        shape = list(gramian.shape)
        raise ValueError(
            f"`gramian` needs the shape [task, task]: got {shape}. It is J @ J.T for a Jacobian J "
            "of one row per task."
        )
    finite = gramian.isfinite()
    if not finite.all():
        _raise_not_finite(finite)
    return gramian.detach().cpu().double()  # one after the other: MPS has no float64


def read_losses(losses: Tensor, n_tasks: int) -> Tensor:
    """The losses [task] in float64 on the CPU.

    Raises:
        ValueError: there is not one finite loss per task.
    """
    if losses.shape != (n_tasks,):
        raise ValueError(
            f"`losses` needs one loss per task, the shape [{n_tasks}]: got {list(losses.shape)}."
        )
    if not losses.isfinite().all():
        raise ValueError(f"The loss of {tasks_where(~losses.isfinite())} is not finite: {losses}.")
    return losses.detach().cpu().double()


def read_preference(preference: Sequence[float] | Tensor | None) -> Tensor | None:
    """The preference [task], checked, or None for the default."""
    return None if preference is None else preference_vector("preference", preference)


def preference_of(
    weighting: Weighting, preference: Tensor | None, n_tasks: int, default: float
) -> Tensor:
    """The preference [task] for the tasks of this step in float64; `default` for all if None.

    Raises:
        ValueError: the number of preferences is not the number of tasks.
    """
    if preference is None:
        return torch.full((n_tasks,), default, dtype=torch.float64)
    numbers = weighting.of_present(preference)
    if numbers.shape != (n_tasks,):
        raise ValueError(
            f"`preference` has {len(numbers)} numbers, but there are {n_tasks} tasks. "
            "Give one number per task, in the order of the losses."
        )
    return numbers.cpu().double()


def tasks_where(found: Tensor) -> str:
    """The positions of the tasks for which `found` [task] holds: "task 0", "tasks 1, 3"."""
    positions = found.nonzero().flatten().tolist()
    return f"task{'s' if len(positions) > 1 else ''} {', '.join(map(str, positions))}"


def _raise_not_finite(finite: Tensor) -> None:
    """Names the tasks whose own gradient is the reason, where there are any."""
    own = ~finite.diagonal()
    found = own if own.any() else ~finite.all(dim=1)
    raise ValueError(
        f"The gradient of {tasks_where(found)} is not finite: the Gramian has nan or inf there. "
        "Look for an overflow, a division by zero or the logarithm of zero in that loss."
    )


def check_n_present(weighting: Weighting, n_known: int, n_tasks: int) -> None:
    """Raises `ValueError` if a method with state for `n_known` tasks is given `n_tasks`."""
    if n_known != n_tasks:
        raise ValueError(
            f"`{weighting._get_name()}` speaks of {n_known} tasks, but the Gramian is of "
            f"{n_tasks}. Make it for as many tasks as there are losses; where a batch has no "
            "labels for some tasks, say which are there: `with weighting.only(tasks):`."
        )
