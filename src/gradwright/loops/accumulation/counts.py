"""How many terms the sums of a window have: read, added up, and a power of two near them.

A count may be a number or a tensor. A tensor on a device stays there until the window is closed.
"""

import math
from numbers import Real

import torch
from torch import Tensor

from gradwright.loops.errors import WindowError

Count = float | Tensor
"""How many terms a sum has: a number, or a tensor with one entry."""

_WHOLE = torch.int64


def read_count(count: object, name: str = "`count`") -> Count:
    """The count as a number or as a scalar tensor without a graph.

    Raises:
        WindowError: it is no number, negative or not finite (on a device `Counts.total` says so).
    """
    if isinstance(count, Tensor):
        value = _read_tensor(count, name)
        if value.device.type != "cpu":
            return value  # reading it would wait for the device
        count = value.item()
    if not isinstance(count, Real):
        raise WindowError(
            f"{name} is {_shown(count)}: it must say how many terms the loss sums over, "
            "as a number or as a tensor with one entry."
        )
    _check(float(count), name)
    return float(count)


def power_of_two(near: Count) -> Count:
    """The power of two just above `near`, where `near` is; 1 for 0.

    Dividing by it and multiplying with it again changes no digit.
    """
    if isinstance(near, Tensor):
        exponent = torch.frexp(near.to(torch.float32)).exponent
        return torch.ldexp(torch.ones_like(exponent, dtype=torch.float32), exponent)
    return math.ldexp(1.0, math.frexp(near)[1])


def larger(count: Count, number: float) -> Count:
    """The larger of two counts, where the first is."""
    return count.clamp_min(number) if isinstance(count, Tensor) else max(count, number)


class Counts:
    """The sum of counts, and what is wrong with one of them."""

    def __init__(self) -> None:
        self._number = 0.0
        self._tensors: dict[torch.device, tuple[Tensor, Tensor]] = {}  # sum, least

    def add(self, count: Count) -> None:
        """Add a count that `read_count` returned."""
        if not isinstance(count, Tensor):
            self._number += count
            return
        known = self._tensors.get(count.device)
        total, least = known if known is not None else (torch.zeros_like(count), count)
        self._tensors[count.device] = total + count, torch.minimum(least, count)

    def total(self, name: str = "`count`") -> float:
        """The sum; waits for the devices that have a part of it.

        Raises:
            WindowError: a count that stayed on its device was negative, or the sum is not finite.
        """
        total = self._number
        for part, least in self._tensors.values():
            value, lowest = torch.stack([part, least]).tolist()
            if lowest < 0:
                _check(lowest, name)
            total += value
        _check(total, name)
        return total


def _read_tensor(count: Tensor, name: str) -> Tensor:
    if count.numel() != 1 or count.is_complex():
        raise WindowError(
            f"{name} is a tensor of shape {list(count.shape)} and type {count.dtype}: it must be "
            "one number, how many terms the loss sums over."
        )
    value = count.detach().reshape(())
    if not value.is_floating_point():
        return value.to(_WHOLE)
    return value if value.dtype in (torch.float32, torch.float64) else value.float()


def _check(value: float, name: str) -> None:
    if not math.isfinite(value) or value < 0:
        raise WindowError(
            f"{name} is {value:g}: it must be a finite number, 0 or above, of terms that the loss "
            "sums over."
        )


def _shown(value: object) -> str:
    return "missing (None)" if value is None else f"a {type(value).__name__}"
