"""A loss that is a constant: where it was made, and where the earlier ones came from."""

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asking_call, loss_name
from gradwright.doctor.evidence.severed import Severance
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.syntax.names import assignments_to, reads_in
from gradwright.doctor.syntax.where import scope_of


def constant_site(crash: Crash, severance: Severance) -> tuple[Operation | None, Site | None]:
    """The operation and line that made the constant behind the loss."""
    for operation in reversed(severance.chain):
        if operation.parents or operation.source or operation.requires_grad:
            continue
        stack = crash.journal.places.stack(operation.place)
        if stack and _is_recent(crash, operation):
            return operation, stack[0]
    made = severance.made
    if made is not None:
        stack = crash.journal.places.stack(made.place)
        return made, stack[0] if stack else None
    return None, _assigned_at(crash)


def _is_recent(crash: Crash, operation: Operation) -> bool:
    """Whether it was made for this loss and not for all of them."""
    call = crash.call
    before = crash.journal.calls[call.index - 1] if call is not None and call.index else None
    return before is None or operation.last_node >= before.node


def _assigned_at(crash: Crash) -> Site | None:
    """Without a record: the line before the backward where the loss begins."""
    found, frame = asking_call(crash), crash.raised_at
    if found is None or frame is None:
        return None
    tree, call = found
    name = loss_name(crash)
    assigned = assignments_to(scope_of(tree, call), name)
    before = [one for one in assigned if one.lineno <= frame.line]
    # `loss = loss + term` in a loop that may not have run comes after the beginning
    begun = [one for one in before if name not in reads_in(one)] or before
    if not begun:
        return None
    return Site(frame.file, begun[-1].lineno, frame.site.function, frame.code)


def earlier_loss(crash: Crash) -> Site | None:
    """The line that made the root of the previous backward from the same line of the program."""
    call = crash.call
    if call is None:
        return None
    places = crash.journal.places
    asked = places.stack(call.place)[:1]
    for earlier in reversed(crash.journal.calls.remembered()):
        if earlier.index >= call.index or not earlier.roots or earlier.roots[0] < 0:
            continue
        here = places.stack(earlier.place)[:1]
        if here and asked and (here[0].code, here[0].line) == (asked[0].code, asked[0].line):
            stack = crash.journal.stack_of_node(earlier.roots[0])
            return stack[0] if stack else None
    return None
