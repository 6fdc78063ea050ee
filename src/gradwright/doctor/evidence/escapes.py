"""Values that left torch, as numbers or numpy arrays, and came back as constants."""

from collections.abc import Sequence
from dataclasses import dataclass

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Journal, Operation
from gradwright.doctor.journal.operations import Escape

_MAKERS = {"tensor", "as_tensor", "asarray", "from_numpy", "new_tensor", "scalar_tensor", "full"}
_CUTS = {"detach", "data", "recording-off", "inference"}


@dataclass(frozen=True, slots=True)
class Passage:
    """A value's way out of torch and back."""

    escapes: tuple[Escape, ...]  # the last lines that took values out, latest first
    cut: Operation  # the operation whose graph was lost, or that had dropped it just before
    back: Operation  # the constant tensor that was made from it


def find_passage(crash: Crash, chain: Sequence[Operation]) -> Passage | None:
    """The passage behind the constants in `chain`, if values with a graph left torch before."""
    journal = crash.journal
    since = _previous_call(crash)
    for back in chain:
        if not _is_constant(back):
            continue
        found = [
            (escape, lost)
            for escape in reversed(journal.operations.escapes)
            if escape.operation < back.index and (lost := _lost(journal, escape, since)) is not None
        ]
        found.sort(key=lambda pair: -_kinship(journal, pair[0], back))
        if found:
            return Passage(tuple(escape for escape, _ in found), found[0][1], back)
    return None


def _is_constant(operation: Operation) -> bool:
    """Made from Python or numpy values, by a function or by a constructor that is not seen."""
    made = operation.name in _MAKERS and not operation.parents
    return made or operation.source == "data"


def _previous_call(crash: Crash) -> int:
    """The node number at the last engine call before the failing one."""
    call = crash.call
    before = crash.journal.calls[call.index - 1] if call is not None and call.index else None
    return before.node if before is not None else 0


def _lost(journal: Journal, escape: Escape, since: int) -> Operation | None:
    """The operation with a graph behind an escape, if it was made in this step."""
    operation = journal.operations[escape.operation]
    while operation is not None and not operation.requires_grad:
        parents = [journal.operations[parent] for parent in operation.parents]
        if operation.cut in _CUTS:
            recent = any(parent is not None and parent.last_node > since for parent in parents)
            return operation if recent else None
        operation = parents[0] if len(parents) == 1 else None
    if operation is None or not (operation.last_node > since or operation.source):
        return None
    return operation


def _kinship(journal: Journal, escape: Escape, back: Operation) -> int:
    """How many lines of the two user stacks, from the outside, are in the same functions."""
    count = 0
    pairs = zip(
        reversed(journal.places.stack(escape.place)),
        reversed(journal.places.stack(back.place)),
        strict=False,
    )
    for out, into in pairs:
        if out.code is not into.code:
            break
        count += 1 + (out.line == into.line)
    return count
