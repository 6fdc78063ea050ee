"""Move several statements that build one value into a loop or a function that uses it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import (
    ends_line,
    first_offset,
    indentation,
    moved_text,
    starts_line,
)
from gradwright.doctor.syntax.names import (
    accesses,
    any_touches,
    assigned_names,
    binds_in,
    reads_in,
)
from gradwright.doctor.syntax.statements import deleted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, Loop, block_of, sibling_around


@rewrite
def move_into_body(
    tree: SourceTree, statements: Sequence[ast.stmt], owner: Loop | Function
) -> list[Change]:
    """Cut assignments of one block and put them, in order, first in the body of `owner`.

    `owner` is a loop or function further down in the same block, or inside a statement there.
    Refuses if something on the way reads what they assign or binds what they read.
    """
    ordered = sorted(statements, key=tree.start)
    _check(tree, ordered, owner)
    first = _first_of(owner)
    if not starts_line(tree, first):
        raise Unsafe
    at = tree.starts[tree.line_of(first_offset(tree, first)) - 1]
    indent = indentation(tree, first)
    text = "".join(moved_text(tree, statement, indent) for statement in ordered)
    return [*deleted(tree, ordered), Change(at, at, text)]


def _first_of(owner: Loop | Function) -> ast.stmt:
    """Where the body begins, behind a docstring."""
    opening = owner.body[0]
    is_text = isinstance(opening, ast.Expr) and isinstance(opening.value, ast.Constant)
    return owner.body[1] if is_text and len(owner.body) > 1 else opening


def _check(tree: SourceTree, ordered: Sequence[ast.stmt], owner: Loop | Function) -> None:
    if not ordered:
        raise Unsafe
    block, start = block_of(tree, ordered[0])
    outer = sibling_around(tree, ordered[0], owner)
    if outer is None or any(statement not in block for statement in ordered):
        raise Unsafe
    way = block[start : block.index(outer) + 1]
    if any(statement not in way for statement in ordered) or outer in ordered:
        raise Unsafe
    names: set[str] = set()
    needed: set[str] = set()
    for statement in ordered:
        _check_simple(tree, statement)
        names.update(assigned_names(statement))
        needed.update(reads_in(statement))
    rest = [statement for statement in way if statement not in ordered]
    for statement in rest:
        bound = binds_in(statement) - _loop_names(owner)
        if any_touches(bound, {*names, *(needed - names)}):
            raise Unsafe
        if statement is not outer and any_touches(_reads_now(statement), names):
            raise Unsafe
    _check_reads_around(tree, outer, owner, names)


def _check_simple(tree: SourceTree, statement: ast.stmt) -> None:
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        raise Unsafe
    if not (starts_line(tree, statement) and ends_line(tree, statement)):
        raise Unsafe
    if any_touches(assigned_names(statement), reads_in(statement)):
        raise Unsafe


def _check_reads_around(
    tree: SourceTree, outer: ast.stmt, owner: Loop | Function, names: set[str]
) -> None:
    """Raise Unsafe if the statement around the body reads the values outside of the body."""
    body, end = tree.start(owner.body[0]), tree.end(owner)
    for access in accesses(outer):
        node = access.node
        assert isinstance(node, ast.expr | ast.stmt)
        inside = body <= tree.start(node) < end
        if not inside and access.kind == "read" and any_touches([access.name], names):
            raise Unsafe
    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
        block, index = block_of(tree, outer)
        later = {name for statement in block[index + 1 :] for name in reads_in(statement)}
        if any_touches(later, names):
            raise Unsafe


def _loop_names(owner: Loop | Function) -> set[str]:
    """Names that the loop binds anew each time: the statements may well read those."""
    if isinstance(owner, ast.For | ast.AsyncFor):
        return binds_in(owner.target)
    return {owner.name} if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef) else set()


def _reads_now(statement: ast.stmt) -> set[str]:
    """What a statement reads when it runs; the body of a function reads later."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return set()
    return reads_in(statement)
