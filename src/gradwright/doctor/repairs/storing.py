"""Fixes for a state where it is stored: put only its value there."""

import ast

import torch

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, statement_of_site
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.storing import storing_lines
from gradwright.doctor.journal import Journal, Site, mark_of
from gradwright.doctor.repairs.detaching import detaching_line
from gradwright.doctor.repairs.state_values import state_value
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.expressions import append_method, wrap_value
from gradwright.doctor.syntax.names import assigned_names
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.graph import is_accumulator, saved_state

Edits = tuple[Edit, ...]


def added_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """`keys.append(key)` to `keys.append(key.detach())`.

    Not where the step computes the value right there and reads it from the collection again: its
    own gradient would be cut.
    """
    if origin.holder is None or origin.holder.kind != "item" or origin.built is None:
        return None
    sites = storing_lines((origin.built,), origin.holder) or [origin.built]
    places = [place for site in sites if (place := statement_of_site(site)) is not None]
    edits: list[Edits | None] = []
    for tree, statement in places:
        added = _added_value(statement)
        if added is None or (ran_in(crash.journal, reuse) and not isinstance(added, ast.Name)):
            return None
        edits.append(append_method(tree, added, ".detach()"))
    if not edits or any(edit is None for edit in edits):
        return None
    return combine(places[0][0], *edits)


def _added_value(statement: ast.stmt) -> ast.expr | None:
    """`key` in `keys.append(key)`, `bank[i] = key` and `old, bank[i] = bank[i], key`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        return call.args[-1] if call.args and not call.keywords else None
    if not isinstance(statement, ast.Assign):
        return None
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Subscript):
        return value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = zip(target.elts, value.elts, strict=False)
        return next((one for to, one in pairs if isinstance(to, ast.Subscript)), None)
    return None


def stored_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """Detach the value of every statement that made a carried side product."""
    found = statement_of_site(origin.built)
    if found is None:
        return None
    tree = found[0]
    edits: dict[ast.stmt, Edits | None] = {}
    for joint in reuse.joints:
        place = statement_of_site(_innermost(crash.journal, joint.carried))
        if place is not None and place[0] is tree and place[1] not in edits:
            edits[place[1]] = _value_detached(crash, origin, *place)
    if not edits or any(edit is None for edit in edits.values()):
        return None
    return combine(tree, *edits.values())


def _value_detached(
    crash: Crash, origin: Origin, tree: SourceTree, statement: ast.stmt
) -> Edits | None:
    names = assigned_names(statement)
    if len(names) == 1 and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return wrap_value(tree, statement, "{}.detach()")
    if origin.name not in names:
        return None
    line = detaching_line(origin.name, state_value(crash, origin, origin.name), optional=False)
    return insert_after(tree, statement, [line]) if line is not None else None


def _innermost(journal: Journal, node: torch.autograd.graph.Node) -> Site | None:
    stack = journal.stack_of_node(node._sequence_nr())
    return stack[0] if stack else None


def ran_in(journal: Journal, reuse: Reuse) -> bool:
    """Whether the earlier backward itself walked the carried tensor."""
    carried = reuse.joints[0].carried
    mark = mark_of(carried)
    if mark is not None:
        return mark == reuse.freed_by.index
    if reuse.freed_by.marked:
        return False
    return not _never_ran(journal, reuse)


def _never_ran(journal: Journal, reuse: Reuse) -> bool:
    """Without marks: older nodes of the same line that still have what they saved."""
    line = journal.stack_of_node(reuse.joints[0].carried._sequence_nr())[:1]
    waiting = reuse.order[reuse.order.index(reuse.freed) + 1 :]
    return any(
        journal.stack_of_node(node._sequence_nr())[:1] == line and saved_state(node).state == "live"
        for node in waiting
        if not is_accumulator(node)
    )
