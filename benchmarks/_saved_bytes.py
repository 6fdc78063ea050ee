"""How much memory autograd holds for backward passes."""

from collections.abc import Callable
from weakref import finalize

import torch
from torch import Tensor


def peak_saved_bytes(work: Callable[[], object]) -> int:
    """The most that saved tensors hold at one time while `work` runs, each storage counted once.

    A view counts with all of the storage that it keeps alive. Tensors that torch does not save by
    its hooks (those that an `autograd.Function` keeps as attributes) are not seen.
    """
    held = _Held()
    with torch.autograd.graph.saved_tensors_hooks(held.pack, _unpack):
        work()
    return held.peak


class _Box:
    """What a graph keeps in the place of a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _Held:
    """The storages that boxes hold now."""

    def __init__(self) -> None:
        self._boxes: dict[int, int] = {}  # by the storage's address
        self._now = self.peak = 0

    def pack(self, tensor: Tensor) -> _Box:
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if not self._boxes.get(address):
            self._boxes[address] = 0
            self._now += size
            self.peak = max(self.peak, self._now)
        self._boxes[address] += 1
        box = _Box(tensor)
        finalize(box, self._free, address, size)
        return box

    def _free(self, address: int, size: int) -> None:
        self._boxes[address] -= 1
        if not self._boxes[address]:
            self._now -= size


def _unpack(box: _Box) -> Tensor:
    return box.tensor
