"""Putting a function mode at the bottom of torch's stack, and taking it out again.

A user's own modes pop whatever lies on top when they end, so ours must never lie above one of
theirs. The context of `torch.set_default_device` insists on being the lowest of all.
"""

from torch._C import _len_torch_function_stack
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._device import DeviceContext


def insert(mode: TorchFunctionMode) -> None:
    """Put `mode` below all modes but that of the default device."""
    if holds(mode):
        return
    stack = _take_all()
    stack.insert(1 if stack and _insists(stack[0]) else 0, mode)
    _put_back(stack)


def remove(mode: TorchFunctionMode) -> bool:
    """Take `mode` out, wherever it lies; says whether it was there."""
    if not holds(mode):
        return False
    _put_back([other for other in _take_all() if other is not mode])
    return True


def holds(mode: TorchFunctionMode) -> bool:
    """Whether `mode` is in this thread's stack."""
    return any(other is mode for other in _get_current_function_mode_stack())


def _insists(mode: TorchFunctionMode) -> bool:
    """Whether that is a default device; `with torch.device(…)` pops what lies on top instead."""
    return isinstance(mode, DeviceContext) and hasattr(mode, "old_device")


def _take_all() -> list[TorchFunctionMode]:
    return [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]


def _put_back(stack: list[TorchFunctionMode]) -> None:
    for mode in stack:
        _push_mode(mode)
