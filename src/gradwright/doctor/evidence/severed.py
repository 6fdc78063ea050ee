"""A loss without a graph: what it was computed from, and the operations that cut it off."""

from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.escapes import Passage, find_passage
from gradwright.doctor.evidence.wanted import wanted_storages
from gradwright.doctor.journal import Operation
from gradwright.doctor.journal.operations import Operations

_SHAPE_ONLY = {"new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"}
_LOOKED_AT = 30  # cuts whose origin is worked out
_DELIBERATE = {"detach", "data", "recording-off", "inference"}


@dataclass(frozen=True, slots=True)
class Severance:
    """The facts of a backward from a tensor that does not require grad."""

    loss: torch.Tensor
    made: Operation | None  # the operation that made the loss, if it was recorded
    cuts: tuple[Operation, ...]  # the cuts nearest to the loss, the likeliest culprit first
    chain: tuple[Operation, ...]  # what the loss was computed from, up to the cuts
    passage: Passage | None  # a value that left torch and came back as a constant
    trains: bool  # whether the first cut lies below tensors that an optimizer trains

    @property
    def cut(self) -> Operation | None:
        """The likeliest culprit."""
        return self.cuts[0] if self.cuts else None


def find_severance(crash: Crash) -> Severance | None:
    """Follow the loss back until operations that read tensors with a graph and dropped it."""
    loss = _root_without_graph(crash)
    if loss is None:
        return None
    operations = crash.journal.operations
    made = operations.of(loss)
    if made is None:
        return Severance(loss, None, (), (), None, False)
    cuts, chain = _frontier(operations, made)
    passage = find_passage(crash, chain)
    if passage is not None and passage.cut.cut:
        cuts.append(passage.cut)
    wanted = crash.once(wanted_storages)
    ranks = {cut.index: _rank(operations, cut, wanted) for cut in cuts[:_LOOKED_AT]}
    ordered = sorted(cuts, key=lambda cut: ranks.get(cut.index, (2, 2)))
    trains = bool(ordered) and ranks[ordered[0].index][0] == 0
    return Severance(loss, made, tuple(ordered), tuple(chain), passage, trains)


def _root_without_graph(crash: Crash) -> torch.Tensor | None:
    if not crash.in_engine or not isinstance(crash.exception, RuntimeError):
        return None
    return next((root for root in crash.roots() if not root.requires_grad), None)


def _frontier(operations: Operations, made: Operation) -> tuple[list[Operation], list[Operation]]:
    """The nearest cuts in the order of the arguments, and what lies before them."""
    cuts: list[Operation] = []
    chain: list[Operation] = []
    todo, seen = [made.index], {made.index}
    while todo:
        operation = operations[todo.pop()]
        if operation is None:
            continue
        chain.append(operation)
        if reads_shape_only(operation):
            continue
        if operation.cut:
            cuts.append(operation)
            continue
        if operation.requires_grad:  # recorded before it was frozen
            continue
        new = [parent for parent in operation.parents if parent not in seen]
        seen.update(new)
        todo.extend(reversed(new))
    return cuts, chain


def reads_shape_only(operation: Operation) -> bool:
    """Whether the result does not depend on the values of the inputs: `zeros_like`."""
    return operation.name.endswith("_like") or operation.name in _SHAPE_ONLY


def _rank(operations: Operations, cut: Operation, wanted: frozenset[int]) -> tuple[int, int]:
    """Trained tensors below first; then what is rarely meant before what often is."""
    return (0 if _reaches(operations, cut, wanted) else 1, int(cut.cut in _DELIBERATE))


def _reaches(operations: Operations, cut: Operation, wanted: frozenset[int]) -> bool:
    """Whether the cut operation was computed from tensors that an optimizer trains."""
    if not wanted:
        return True
    for operation in operations.ancestors(cut):
        if operation.storage in wanted or operation.source == "unseen":
            return True
    return False
