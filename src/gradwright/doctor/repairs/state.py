"""Fixes for a state that goes into the next step with its graph."""

import ast
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import site_of_call
from gradwright.doctor.evidence.handed_on import handed_on_unchanged
from gradwright.doctor.evidence.lost_detach import find_lost_detach
from gradwright.doctor.evidence.origin import (
    Origin,
    names_read,
    statement_of_site,
    storing_lines,
    value_of,
)
from gradwright.doctor.evidence.owners import attribute_of, owners_of
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.journal import Journal, Site, mark_of
from gradwright.doctor.repairs.after_step import detached_after_step, reset_owners
from gradwright.doctor.repairs.detaching import detaching_line
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.expressions import append_method, wrap_value
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.state import detach_reads
from gradwright.doctor.syntax.statements import insert_after, insert_before, replace_statement
from gradwright.doctor.syntax.stored_back import store_back
from gradwright.doctor.syntax.totals import backward_of_addend
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import function_at
from gradwright.graph import is_accumulator, saved_state

Edits = tuple[Edit, ...]


def fixes_for_state(crash: Crash, reuse: Reuse, origin: Origin) -> tuple[Fix, ...]:
    """The first fix that can be written."""
    for title, edits in _detaching(crash, reuse, origin):
        if edits is not None:
            return (Fix(title, edits),)
    return ()


def _detaching(crash: Crash, reuse: Reuse, origin: Origin) -> Iterator[tuple[str, Edits | None]]:
    yield "store the detached parts back", _stored_back(crash)
    yield f"put only the value into `{origin.name}`", _added_detached(crash, reuse, origin)
    yield f"keep the result of `{origin.name}.detach()`", _dropped_detach(crash, reuse, origin)
    yield "let the helper return the value only", _helper_detached(crash, reuse, origin)
    if not _ran_in(crash.journal, reuse):
        # a side product, such as running statistics: nothing in its own step needs its gradient
        yield f"store {origin.said} without its graph", _stored_detached(crash, reuse, origin)
    if _updates_per_step(crash, reuse, origin) > 1:
        yield f"forget {origin.said} after each step", reset_owners(crash, origin)
        yield f"detach {origin.said} after each step", detached_after_step(crash, origin)
    yield "call backward on the new loss only", _addend_only(reuse, crash, origin)
    yield (
        f"start each step from the value of {origin.said} only",
        _read_detached(crash, reuse, origin),
    )


# -- a collection ---------------------------------------------------------------------------------


def _added_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
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
        if added is None or (_ran_in(crash.journal, reuse) and not isinstance(added, ast.Name)):
            return None
        edits.append(append_method(tree, added, ".detach()"))
    if not edits or any(edit is None for edit in edits):
        return None
    return combine(places[0][0], *edits)


def _stored_back(crash: Crash) -> Edits | None:
    lost = crash.once(find_lost_detach)
    return store_back(lost.tree, lost.loop, lost.assignment) if lost is not None else None


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


# -- a detach() whose result was dropped --------------------------------------------------------


def dropped_detach(origin: Origin) -> tuple[SourceTree, ast.Expr] | None:
    """A statement `state.detach()` between birth and reuse: it changes nothing."""
    found = statement_of_site(origin.built)
    if found is None or origin.built is None or not origin.name:
        return None
    tree, statement = found
    scope = function_at(tree, origin.built.line) or tree.root
    for node in ast.walk(scope):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        if not isinstance(function, ast.Attribute) or function.attr != "detach":
            continue
        if (dotted(function.value) or "") in (origin.name, *assigned_names(statement)):
            return tree, node
    return None


def _dropped_detach(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    found = dropped_detach(origin)
    if found is None:
        return None
    tree, statement = found
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    name = dotted(statement.value.func.value)
    return replace_statement(tree, statement, f"{name} = {tree.source(statement.value)}")


def _helper_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """`return state` to `return state.detach()`, in a helper that takes one tensor at a time."""
    helper = handed_on_unchanged(crash, reuse, origin)
    if helper is None:
        return None
    inside = (node for node in ast.walk(helper.definition) if isinstance(node, ast.Call))
    recurses = any(dotted(node.func) == helper.definition.name for node in inside)
    if not recurses and not isinstance(_state(crash, origin, origin.name), torch.Tensor):
        return None
    return append_method(helper.tree, helper.returned, ".detach()")


# -- where to cut -------------------------------------------------------------------------------


def _ran_in(journal: Journal, reuse: Reuse) -> bool:
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


def _updates_per_step(crash: Crash, reuse: Reuse, origin: Origin) -> int:
    """How often the line that makes the state ran between the two backwards."""
    timeline = crash.journal.main
    place = timeline.place_of(reuse.joints[0].carried._sequence_nr())
    visits = timeline.visits(place, since=reuse.freed_by.node)
    return len([start for start in visits if start < reuse.call.node])


def _stored_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
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
    line = detaching_line(origin.name, _state(crash, origin, origin.name), optional=False)
    return insert_after(tree, statement, [line]) if line is not None else None


def _innermost(journal: Journal, node: torch.autograd.graph.Node) -> Site | None:
    stack = journal.stack_of_node(node._sequence_nr())
    return stack[0] if stack else None


def _read_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """Detach the state right before the line that reads it first in the next step."""
    found = _first_read(crash, reuse, origin)
    if found is None or origin.reused is None or not origin.name:
        return None
    tree, statement = found
    item = _item_read(tree, statement, origin)
    if item is not None:
        return append_method(tree, item, ".detach()")
    name = _local_name(tree, statement, origin)
    if name is None:
        return None
    value = _state(crash, origin, name)
    if "." in name and not name.startswith("self."):
        kinds = {torch.Tensor: "tensor", tuple: "tuple", list: "list", dict: "dict"}
        kind = next((kinds[one] for one in kinds if isinstance(value, one)), "tensor")
        return detach_reads(tree, statement, name, kind)
    line = detaching_line(name, value, _may_be_none(tree, statement, name))
    if line is not None and _starts_as_number(tree, name):
        line = f"{name} = {name} if isinstance({name}, (int, float)) else {name}.detach()"
    return insert_before(tree, statement, [line]) if line is not None else None


def _first_read(crash: Crash, reuse: Reuse, origin: Origin) -> tuple[SourceTree, ast.stmt] | None:
    """Of the statements of one function that read the state, the one that ran first."""
    joints = [joint for joint in reuse.joints if joint.carried is reuse.joints[0].carried]
    consumers = [joint.consumer._sequence_nr() for joint in joints if joint.consumer is not None]
    for number in sorted(consumers):
        for site in crash.journal.stack_of_node(number):
            found = statement_of_site(site)
            if found is None or origin.reused is None or site.code is not origin.reused.code:
                continue
            if _local_name(*found, origin) is not None:
                return found
    return statement_of_site(origin.reused)


def _addend_only(reuse: Reuse, crash: Crash, origin: Origin) -> Edits | None:
    """A running total that is itself the loss."""
    addition = statement_of_site(origin.reused)
    backward = statement_of_site(site_of_call(crash.journal, reuse.call))
    if addition is None or backward is None or addition[0] is not backward[0]:
        return None
    return backward_of_addend(addition[0], addition[1], backward[1])


def _item_read(tree: SourceTree, statement: ast.stmt, origin: Origin) -> ast.Subscript | None:
    """`mem["h"]` in the reading statement, when the state lives in a dict."""
    if origin.holder is None or not isinstance(origin.holder.container, dict):
        return None
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if key is not None and origin.holder.path.endswith(f"[{key!r}]"):
                return node
    return None


def _local_name(tree: SourceTree, statement: ast.stmt, origin: Origin) -> str | None:
    """The name by which the reading statement knows the state."""
    reads = names_read(statement)
    attribute = origin.holder.attribute if origin.holder is not None else ""
    wanted = {origin.name} if not attribute else set()
    for name in sorted(reads, key=len, reverse=True):
        if name in wanted or (attribute and name.rpartition(".")[2] == attribute):
            return name
    return None


def _state(crash: Crash, origin: Origin, name: str) -> object:
    if origin.reused is not None:
        value = value_of(name, crash, origin.reused.file)
        if value is not None:
            return value
    owner = origin.holder.owner if origin.holder is not None else _owner(crash, origin, name)
    return attribute_of(owner, name.rpartition(".")[2])


def _owner(crash: Crash, origin: Origin, name: str) -> object:
    """The module or object whose class wrote `self.<attribute>` on the reading line."""
    for _, module in owners_of(crash, origin):
        if name.startswith("self.") and hasattr(module, name.removeprefix("self.")):
            return module
    return None


def _may_be_none(tree: SourceTree, statement: ast.stmt, name: str) -> bool:
    """Whether the source somewhere sets the state to None, or gives None as its default."""
    for node in ast.walk(tree.root):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = assigned_names(node)
            if node.value.value is None and any(
                one == name or one.rpartition(".")[2] == name.rpartition(".")[2] for one in names
            ):
                return True
        if isinstance(node, ast.FunctionDef) and any(
            argument.arg == name for argument in node.args.args
        ):
            return True
    return False


def _starts_as_number(tree: SourceTree, name: str) -> bool:
    """Whether the source somewhere gives the state a plain number, such as `total = 0`."""
    for node in ast.walk(tree.root):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        if name in assigned_names(node) and isinstance(node.value.value, int | float):
            return True
    return False
