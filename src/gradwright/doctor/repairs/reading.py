"""Fixes for a state where the next step reads it: take only its value."""

import ast

import torch

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, names_read, statement_of_site
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.detaching import detaching_line
from gradwright.doctor.repairs.state_values import may_be_none, starts_as_number, state_value
from gradwright.doctor.syntax.expressions import append_method
from gradwright.doctor.syntax.names import local_names
from gradwright.doctor.syntax.state import detach_reads
from gradwright.doctor.syntax.statements import insert_before
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import scope_of

Edits = tuple[Edit, ...]


def read_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
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
    value = state_value(crash, origin, name)
    if not _may_be_bound(tree, statement, name):
        if may_be_none(tree, statement, name) or starts_as_number(tree, name):
            return None
        kinds = {torch.Tensor: "tensor", tuple: "tuple", list: "list", dict: "dict"}
        kind = next((kinds[one] for one in kinds if is_a(value, one)), "tensor")
        return detach_reads(tree, statement, name, kind)
    line = detaching_line(name, value, may_be_none(tree, statement, name))
    if line is not None and starts_as_number(tree, name):
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


def _may_be_bound(tree: SourceTree, statement: ast.stmt, name: str) -> bool:
    """Whether a statement before this one may give the name a new value.

    Attributes of other objects may be read-only, as in a frozen dataclass, and a variable of an
    outer function would become a new, empty one of this function.
    """
    if "." in name:
        return name.startswith("self.")
    scope = scope_of(tree, statement)
    if isinstance(scope, ast.Module):
        return True
    declared = {
        one
        for node in ast.walk(scope)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for one in node.names
    }
    return name in local_names(scope) or name in declared


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
