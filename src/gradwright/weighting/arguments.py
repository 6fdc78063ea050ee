"""Checks of what a method is made with: each names the argument, what it needs and what it got."""

from collections.abc import Sequence

import torch
from torch import Tensor


def check_n_tasks(n_tasks: int) -> None:
    """State that belongs to tasks needs at least one of them."""
    if n_tasks < 1:
        raise ValueError(f"`n_tasks` needs to be 1 or more: got {n_tasks}.")


def check_positive(name: str, value: float) -> None:
    """A number above zero."""
    if not value > 0:
        raise ValueError(f"`{name}` needs to be above 0: got {value}.")


def check_not_negative(name: str, value: float) -> None:
    """A number that is zero or more."""
    if not value >= 0:
        raise ValueError(f"`{name}` needs to be 0 or more: got {value}.")


def check_fraction(name: str, value: float) -> None:
    """A number in [0, 1), such as the part of a moving average that is kept."""
    if not 0 <= value < 1:
        raise ValueError(f"`{name}` needs to be 0 or more and below 1: got {value}.")


def finite_vector(name: str, values: Sequence[float] | Tensor) -> Tensor:
    """A copy of `values` as a tensor [task]: one finite number per task."""
    vector = torch.as_tensor(values, dtype=torch.get_default_dtype()).detach().clone()
    if vector.dim() != 1 or not len(vector) or not vector.isfinite().all():
        raise ValueError(f"`{name}` needs one finite number per task: got {values}.")
    return vector


def preference_vector(name: str, values: Sequence[float] | Tensor) -> Tensor:
    """A copy of `values` as a tensor [task]: how much each task matters."""
    vector = finite_vector(name, values)
    if (vector < 0).any() or not vector.any():
        raise ValueError(f"`{name}` needs numbers of 0 or more, not all 0: got {values}.")
    return vector
