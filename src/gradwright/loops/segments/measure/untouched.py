"""Runs a model on the side: its buffers and the random numbers are afterwards as before."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from gradwright.loops.segments.rerun.moment import moment


@contextmanager
def untouched() -> Iterator[None]:
    """Within the block gradients are recorded, and copies stand for the buffers of modules that
    run; afterwards the buffers are there again, and random numbers go on as if nothing was drawn.

    A buffer of a module is known when the module, or one that it is in, is called.
    """
    aside = _Aside()
    handle = register_module_forward_pre_hook(aside.copy_buffers)
    try:
        with moment([], None).again(), torch.enable_grad():
            yield
    finally:
        handle.remove()
        aside.put_back()


class _Aside:
    """The buffers for which copies stand."""

    def __init__(self) -> None:
        self._seen: set[nn.Module] = set()
        self._buffers: list[tuple[nn.Module, str, Tensor]] = []
        self._copies: dict[int, Tensor] = {}  # by the id of the buffer, which may be in two modules

    def copy_buffers(self, module: nn.Module, _: object) -> None:
        """Put copies into a module that is about to run for the first time, and into its parts."""
        if module in self._seen:
            return
        for part in module.modules():
            if part not in self._seen:
                self._seen.add(part)
                self._copy_own(part)

    def _copy_own(self, module: nn.Module) -> None:
        for name, buffer in module._buffers.items():
            if buffer is None:
                continue
            copy = self._copies.setdefault(id(buffer), buffer.detach().clone())
            self._buffers.append((module, name, buffer))
            module._buffers[name] = copy

    def put_back(self) -> None:
        """The buffers are in their modules again."""
        for module, name, buffer in self._buffers:
            module._buffers[name] = buffer
