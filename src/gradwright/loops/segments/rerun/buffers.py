"""Buffers that a forward pass changes, such as the running statistics of BatchNorm."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook


class Buffer(NamedTuple):
    """A buffer of a module, by its name there."""

    module: nn.Module
    name: str

    def copy(self) -> Tensor:
        """Its value now."""
        return self.module._buffers[self.name].detach().clone()  # type: ignore[union-attr]


class Watched(NamedTuple):
    """A buffer as it was before its module ran."""

    buffer: Buffer
    tensor: Tensor
    version: int
    value: Tensor

    @property
    def changed(self) -> bool:
        """Whether it was written to, or replaced; BatchNorm writes without a new version."""
        now = self.buffer.module._buffers.get(self.buffer.name)
        if now is None:
            return False
        written = now is not self.tensor or now._version != self.version
        return written or not torch.equal(now, self.value)


class Watch:
    """The buffers of the modules that ran so far, and those that a forward pass changed."""

    def __init__(self) -> None:
        self.changing: list[Buffer] = []
        self._seen: set[nn.Module] = set()
        self._new: list[Watched] = []

    def note(self, module: nn.Module, _: object) -> None:
        """Remember the buffers of a module that is about to run for the first time."""
        if module in self._seen:
            return
        self._seen.add(module)
        for name, tensor in module._buffers.items():
            if tensor is not None:
                buffer = Buffer(module, name)
                self._new.append(Watched(buffer, tensor, tensor._version, buffer.copy()))

    def found(self) -> list[tuple[Buffer, Tensor]]:
        """The changed buffers of modules that are new since the last call, as they were before."""
        changed = [(each.buffer, each.value) for each in self._new if each.changed]
        self._new.clear()
        self.changing.extend(buffer for buffer, _ in changed)
        return changed


@contextmanager
def watch_buffers() -> Iterator[Watch]:
    """Within the block, notes the buffers of every module before its first forward pass."""
    watch = Watch()
    handle = register_module_forward_pre_hook(watch.note)
    try:
        yield watch
    finally:
        handle.remove()


@contextmanager
def as_before(values: Sequence[tuple[Buffer, Tensor]]) -> Iterator[None]:
    """Within the block, other tensors stand for these buffers; what is written there is lost.

    Nothing is copied back in place: autograd may have saved the buffer.
    """
    now = [(buffer, buffer.module._buffers[buffer.name]) for buffer, _ in values]
    tied = {id(tensor): value for (_, value), (_, tensor) in zip(values, now, strict=True)}
    try:
        for (module, name), tensor in now:
            module._buffers[name] = tied[id(tensor)]
        yield
    finally:
        for (module, name), tensor in now:
            module._buffers[name] = tensor
