"""Move a statement to a later or earlier place in its block."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import indentation, line_end, own_lines, starts_line
from gradwright.doctor.syntax.names import Access, accesses, any_touches
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Loop, block_of


@rewrite
def move_after(tree: SourceTree, statement: ast.stmt, anchor: ast.stmt) -> list[Change]:
    """Cut a statement and put it after a later one of the same block.

    Refuses if a statement on the way, the anchor included, reads or binds a name it binds, or
    binds a name it reads.
    """
    block, index = block_of(tree, statement)
    if anchor not in block[index + 1 :]:
        raise Unsafe
    for other in block[index + 1 : block.index(anchor) + 1]:
        _check_independent(statement, other)
    start, end = own_lines(tree, statement, statement)
    at = line_end(tree, anchor)
    text = tree.text[start:end]
    lost = tree.newline if tree.text[at - 1] not in "\r\n" else ""
    ended = text if text.endswith(("\n", "\r")) else text + tree.newline
    return [Change(start, end, ""), Change(at, at, lost + ended)]


def _check_independent(statement: ast.stmt, other: ast.stmt) -> None:
    """Raise Unsafe if exchanging the two changes what a name means."""
    mine = {one.name for one in _bound(statement)}
    theirs = {one.name for one in _bound(other)}
    read = {one.name for one in accesses(statement) if one.kind == "read"}
    read_there = {one.name for one in accesses(other) if one.kind == "read"}
    if any_touches(mine, read_there | theirs) or any_touches(theirs, read):
        raise Unsafe


def _bound(statement: ast.stmt) -> list[Access]:
    return [one for one in accesses(statement) if one.kind == "bind"]


@rewrite
def move_out_of_loop(
    tree: SourceTree, loop: Loop, before: list[ast.stmt], after: list[ast.stmt]
) -> list[Change]:
    """Cut simple statements of a loop's body and put them in front of it and behind it.

    Refuses statements that read or bind what the loop binds, and a loop left without a body.
    """
    gone = [*before, *after]
    if not gone or any(one not in loop.body for one in gone) or len(gone) == len(loop.body):
        raise Unsafe
    inside = {one.name for one in accesses(loop) if one.kind == "bind"}
    if any(any_touches(inside, {a.name for a in accesses(one)}) for one in gone):
        raise Unsafe
    indent = indentation(tree, loop)
    changes = [Change(*own_lines(tree, one, one), "") for one in gone]
    top = tree.starts[tree.line_of(tree.start(loop)) - 1]
    end = line_end(tree, loop)
    lost = tree.newline if tree.text[end - 1] not in "\r\n" else ""
    written = _lines(tree, before, indent)
    if written:
        changes.append(Change(top, top, written))
    written = _lines(tree, after, indent)
    if written:
        changes.append(Change(end, end, lost + written))
    return changes


def _lines(tree: SourceTree, statements: list[ast.stmt], indent: str) -> str:
    if any("\n" in tree.source(one) for one in statements):
        raise Unsafe
    return "".join(f"{indent}{tree.source(one)}{tree.newline}" for one in statements)


@rewrite
def step_after_all(
    tree: SourceTree, first: ast.stmt, step: ast.stmt, last: ast.stmt
) -> list[Change]:
    """Move an optimizer step from between two backwards behind the last.

    `zero_grad` calls on the way go in front of the first: they would clear its gradients.
    """
    block, index = block_of(tree, step)
    if first not in block[:index] or last not in block[index + 1 :]:
        raise Unsafe
    between = block[block.index(first) + 1 : block.index(last)]
    cleared = [one for one in between if clears_gradients(one)]
    indent = indentation(tree, step)
    top = tree.starts[tree.line_of(tree.start(first)) - 1]
    end = line_end(tree, last)
    lost = tree.newline if tree.text[end - 1] not in "\r\n" else ""
    changes = [Change(*own_lines(tree, one, one), "") for one in (*cleared, step)]
    if cleared and not starts_line(tree, first):
        raise Unsafe  # what stands before it on its line would come after
    if cleared:
        changes.append(Change(top, top, _lines(tree, cleared, indent)))
    return [*changes, Change(end, end, lost + _lines(tree, [step], indent))]


def clears_gradients(statement: ast.stmt) -> bool:
    """Whether a statement is a call of `zero_grad`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    called = call.func if isinstance(call, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "zero_grad"
