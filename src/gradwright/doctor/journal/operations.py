"""What each torch operation did: from which tensors, with recording on or off, writing where.

A function mode sees every torch function that Python calls. That costs several times a small
step, so the journal keeps it on in the first steps only, and whenever new code runs.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from gradwright.doctor.journal.usercode import UserCode

Cut = Literal[
    "", "recording-off", "inference", "detach", "data", "copy", "integer", "no-derivative"
]
Source = Literal["", "parameter", "leaf", "data", "unseen"]

LIMIT = 100_000  # operations remembered; the older half is dropped beyond it
SWITCHES = 2_000  # changes of grad mode remembered, the latest ones


class Operation:
    """One recorded operation, or (when `source` is set) a tensor that came from elsewhere."""

    __slots__ = (
        "code",
        "cut",
        "device",
        "dtype",
        "first_node",
        "index",
        "instruction",
        "last_node",
        "memory",
        "name",
        "parents",
        "place",
        "requires_grad",
        "shape",
        "source",
        "storage",
        "switch",
        "view",
    )

    def __init__(self, index: int, name: str, place: int, output: torch.Tensor) -> None:
        self.index = index
        self.name = name
        self.place = place
        self.code: object = None
        self.instruction = -1
        self.parents: tuple[int, ...] = ()
        self.first_node = self.last_node = 0
        self.cut: Cut = ""
        self.source: Source = ""
        self.switch: Switch | None = None
        self.requires_grad = output.requires_grad
        self.shape, self.device = _shape_and_device(output)
        self.dtype = output.dtype
        self.storage = storage_of(output)
        self.memory = memory_of(output)
        self.view = False  # it shares the memory of one of its inputs


class Switch:
    """Somebody turned the recording of gradients on or off."""

    __slots__ = ("place", "recording")

    def __init__(self, recording: bool, place: int) -> None:
        self.recording = recording
        self.place = place


class Write:
    """A tensor's content was changed in place."""

    __slots__ = ("code", "instruction", "name", "node", "place", "storage", "version")

    def __init__(self, name: str, place: int, tensor: torch.Tensor, node: int) -> None:
        self.name = name
        self.place = place
        self.storage = storage_of(tensor)
        self.version = tensor._version
        self.node = node  # the next node's number when it happened
        self.code: object = None
        self.instruction = -1


class Escape:
    """A tensor's value left torch: `.item()`, `.numpy()`, `float(...)`."""

    __slots__ = ("name", "operation", "place", "required_grad")

    def __init__(self, name: str, place: int, operation: int, required_grad: bool) -> None:
        self.name = name
        self.place = place
        self.operation = operation
        self.required_grad = required_grad


class Freeze:
    """`requires_grad` of a leaf was set."""

    __slots__ = ("place", "tensor", "value")

    def __init__(self, tensor: torch.Tensor, value: bool, place: int) -> None:
        self.tensor = weakref.ref(tensor)
        self.value = value
        self.place = place


def storage_of(tensor: torch.Tensor) -> int:
    """A number that tensors sharing memory have in common; 0 where there is no such memory."""
    if _answers_itself(tensor):
        return 0
    try:
        return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0
    except (RuntimeError, NotImplementedError, ValueError):  # functorch, meta, uninitialized
        return 0


def memory_of(tensor: torch.Tensor) -> StorageWeakRef | None:
    """The memory of a tensor, not kept alive. Equal for the same memory, never for a later one.

    `storage_of` may name an address that was freed and given away again; this cannot.
    """
    if _answers_itself(tensor):
        return None
    try:
        strided = tensor.layout is torch.strided
        return StorageWeakRef(tensor.untyped_storage()) if strided else None
    except (RuntimeError, NotImplementedError, ValueError):  # functorch, meta, uninitialized
        return None


def _shape_and_device(tensor: torch.Tensor) -> tuple[tuple[int, ...], str]:
    if _answers_itself(tensor):
        return (), ""
    try:
        return tuple(tensor.shape), str(tensor.device)
    except (RuntimeError, ValueError):  # lazy modules: not initialized yet
        return (), ""


def _answers_itself(tensor: torch.Tensor) -> bool:
    """Whether somebody's `__torch_dispatch__` would run if we asked for shape or memory."""
    return type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


class Operations:
    """The record of one program: operations, in-place writes, escapes, freezes, switches."""

    def __init__(self, is_user: UserCode) -> None:
        self.is_user = is_user
        self.dropped = 0
        self.entries: list[Operation] = []
        self.writes: list[Write] = []
        self.escapes: list[Escape] = []
        self.freezes: list[Freeze] = []
        self.switches: list[Switch] = []
        self.rest_at = LIMIT  # that many operations without a new line: `on_plenty` is called
        self.on_plenty: Callable[[], None] = lambda: None
        self._of_tensor: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def __getitem__(self, index: int) -> Operation | None:
        position = index - self.dropped
        return self.entries[position] if 0 <= position < len(self.entries) else None

    def of(self, tensor: torch.Tensor) -> Operation | None:
        """The operation that made `tensor`, if it was recorded."""
        entry = self._of_tensor.get(id(tensor))
        return self[entry[1]] if entry is not None and entry[0]() is tensor else None

    def made_between(self, first: int, last: int) -> Iterator[Operation]:
        """Operations that made graph nodes with numbers in `first..last`."""
        for operation in reversed(self.entries):
            if operation.first_node <= last and first < operation.last_node:
                yield operation

    def ancestors(self, operation: Operation) -> Iterator[Operation]:
        """`operation` and all it was computed from, latest first."""
        todo, seen = [operation.index], {operation.index}
        while todo:
            todo.sort()
            found = self[todo.pop()]
            if found is None:
                continue
            yield found
            new = [parent for parent in found.parents if parent not in seen]
            seen.update(new)
            todo.extend(new)

    @property
    def count(self) -> int:
        """How many were written down so far."""
        return self.dropped + len(self.entries)

    def add(self, name: str, place: int, output: torch.Tensor) -> Operation:
        """Write down that `output` was made at `place`."""
        if len(self.entries) >= LIMIT:
            self._drop_the_older_half()
        operation = Operation(self.count, name, place, output)
        self.entries.append(operation)
        self._remember(output, operation.index)
        if self.count >= self.rest_at:
            self.on_plenty()
        return operation

    def keep_in_bounds(self) -> None:
        """Forget the oldest of what is too much."""
        for events in (self.writes, self.escapes, self.freezes):
            if len(events) > 2 * LIMIT:
                del events[:LIMIT]
        if len(self.switches) > SWITCHES:
            del self.switches[: SWITCHES // 2]

    def _drop_the_older_half(self) -> None:
        half = LIMIT // 2
        del self.entries[:half]
        self.dropped += half
        table = self._of_tensor
        for key in [key for key, (_, index) in table.items() if index < self.dropped]:
            table.pop(key, None)

    def _remember(self, tensor: torch.Tensor, index: int) -> None:
        key, table = id(tensor), self._of_tensor

        def forget(reference: weakref.ref[torch.Tensor]) -> None:
            entry = table.get(key)
            if entry is not None and entry[0] is reference:
                del table[key]

        table[key] = (weakref.ref(tensor, forget), index)
