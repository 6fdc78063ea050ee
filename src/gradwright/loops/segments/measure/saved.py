"""How many bytes the graph of a segment holds for its backward."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ref

import torch
from torch import Tensor, UntypedStorage


class SavedBytes:
    """The storages that graphs hold while they are recorded.

    A storage counts as a whole, once, and only if it is gone at the end: parameters, buffers, the
    batch and whatever else was there before is not counted, the copy of a segment's data is. Not
    seen is memory that a backward needs while it runs, and tensors that an `autograd.Function`
    keeps without `save_for_backward`. Of a checkpoint, its inputs count.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}  # by the storage's address
        self._marks: list[list[_Held]] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Graphs that are built within the block are looked at."""
        with torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack):
            yield

    def mark(self) -> None:
        """Remember what is held now: to be called between a forward pass and its backward."""
        self._marks.append([held for held in self._held.values() if held.boxes])

    def most(self) -> int:
        """Bytes at the mark that held most; to be asked when the graphs are gone."""
        gc.collect()
        return max((sum(held.freed for held in mark) for mark in self._marks), default=0)

    def _pack(self, tensor: Tensor) -> "_Box | Tensor":
        if tensor.layout is not torch.strided:
            return tensor
        storage = tensor.untyped_storage()
        held = self._held.get(storage.data_ptr())
        if held is None or held.storage() is not storage:
            held = self._held[storage.data_ptr()] = _Held(storage)
        return _Box(tensor.detach(), held)


class _Held:
    """A storage, not kept alive, and how often graphs hold it."""

    def __init__(self, storage: UntypedStorage) -> None:
        self.storage, self._size, self.boxes = ref(storage), storage.nbytes(), 0

    @property
    def freed(self) -> int:
        """Its bytes, once it is gone."""
        return self._size if self.storage() is None else 0


class _Box:
    """What a graph holds in the place of a tensor."""

    def __init__(self, tensor: Tensor, held: _Held) -> None:
        self.tensor, self._held = tensor, held
        held.boxes += 1

    def __del__(self) -> None:
        self._held.boxes -= 1


def _unpack(box: _Box | Tensor) -> Tensor:
    return box.tensor if isinstance(box, _Box) else box
