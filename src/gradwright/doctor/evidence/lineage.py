"""What an operation was computed from, also past leaves that were made of results.

`nn.Parameter(w - rate * g)` leaves no record of its own: it only wraps the memory of what it was
given. The journal knows which operations wrote that memory, and that it is the same one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Operation
from gradwright.doctor.journal.operations import memory_of

_ON_LISTS = ("_foreach_", "_fused_")  # each result comes from one place of each list


class Lineage:
    """The record of operations with the gaps at new leaves closed."""

    def __init__(self, crash: Crash) -> None:
        self._operations = crash.journal.operations
        self._in_memory: dict[int, list[Operation]] = defaultdict(list)
        for one in self._operations.entries:
            if one.memory is not None and not one.source:
                self._in_memory[one.memory.cdata].append(one)

    def makers(self, leaf: Operation) -> list[Operation]:
        """The operations that made the memory of a leaf before it was met; what they wrote last.

        Results come before views and in-place writes, later ones before earlier ones.
        """
        if not leaf.source or leaf.memory is None:
            return []
        known = self._in_memory.get(leaf.memory.cdata, [])
        before = [one for one in known if one.index < leaf.index]
        return sorted(before, key=lambda one: (one.view, -one.index))

    def back_from(
        self, starts: Iterable[Operation]
    ) -> Iterator[tuple[Operation, Operation | None]]:
        """All that led to these, latest first; with each the leaf that was made of it, if any."""
        todo = [(-one.index, -1) for one in starts]
        heapify(todo)
        seen: set[int] = set()
        while todo:
            index, leaf = heappop(todo)
            found = self._operations[-index]
            if found is None or -index in seen:
                continue
            seen.add(-index)
            yield found, self._operations[leaf]
            for parent in self._parents(found):
                heappush(todo, (-parent, -1))
            for maker in self.makers(found):
                heappush(todo, (-maker.index, found.index))

    def forward_from(self, start: Operation) -> set[int]:
        """The indices of `start` and of all that was computed from it."""
        reached, written = {start.index}, set[int]()
        for one in self._operations.entries:
            from_leaf = bool(one.source) and one.memory is not None and one.memory.cdata in written
            if not reached.isdisjoint(self._parents(one)) or from_leaf:
                reached.add(one.index)
                if one.memory is not None:
                    written.add(one.memory.cdata)
        return reached

    def _parents(self, operation: Operation) -> tuple[int, ...]:
        """What it was computed from; of operations on lists, only what is sure."""
        if not operation.name.startswith(_ON_LISTS):
            return operation.parents
        known = ((index, self._operations[index]) for index in operation.parents)
        return tuple(i for i, one in known if one is not None and one.memory == operation.memory)


def lies_in(operation: Operation, tensors: Iterable[torch.Tensor]) -> bool:
    """Whether an operation's result lies in the memory of one of these tensors."""
    memories = [memory_of(tensor) for tensor in tensors]
    return operation.memory is not None and operation.memory in memories
