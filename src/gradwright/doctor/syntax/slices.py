"""The statements that define a value, and computing them again later."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import ends_line, moved_text, starts_line
from gradwright.doctor.syntax.names import accesses, any_touches, assigned_names, binds_in, reads_in
from gradwright.doctor.syntax.statements import deleted, inserted_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import assignments_before, block_of, shares_line


def slice_of(
    tree: SourceTree,
    scope: ast.AST,
    name: str,
    before_line: int,
    until: int | Callable[[ast.stmt], bool],
) -> list[ast.stmt]:
    """The statements of one block that define `name` as it is at `before_line`, in order.

    Goes back from the last assignment before that line to the line `until`, or to the statement
    for which `until` is true; neither goes into the slice further back than that.
    """
    last = assignments_before(tree, scope, name, before_line)
    if last is None or (isinstance(until, int) and shares_line(tree, until)):
        return []
    block, index = block_of(tree, last)
    wanted, found = {name}, []
    for statement in reversed(block[: index + 1]):
        stop = statement.lineno < until if isinstance(until, int) else until(statement)
        if stop:
            break
        bound = set(assigned_names(statement))
        if bound & wanted:
            found.append(statement)
            wanted = (wanted - bound) | reads_in(statement)
    return found[::-1]


@rewrite
def recompute_after(
    tree: SourceTree, statements: Sequence[ast.stmt], anchor: ast.stmt
) -> list[Change]:
    """Compute a value again after `anchor`, such as an optimizer step, in the same block.

    `statements` define it, in order; the last assigns it. Of a tuple assignment only the elements
    that are needed come along. A statement whose result is read up to the anchor is copied, any
    other moved. Refuses if what they read is bound anew on the way.
    """
    block, stop = block_of(tree, anchor)
    if not statements or any(one not in block[:stop] for one in statements):
        raise Unsafe
    lines, moved = _lines(tree, statements, block[: stop + 1])
    between = block[block.index(statements[0]) : stop + 1]
    others = [one for one in between if one not in statements]
    for statement in statements:
        _check_unchanged(
            statement, [one for one in others if tree.start(one) > tree.start(statement)]
        )
    changes = deleted(tree, moved) if moved else []
    return [*changes, *inserted_after(tree, anchor, lines)]


def _check_unchanged(statement: ast.stmt, others: Sequence[ast.stmt]) -> None:
    bound = [one.name for two in others for one in accesses(two) if one.kind == "bind"]
    if any_touches(bound, {*reads_in(statement), *assigned_names(statement)}):
        raise Unsafe


def _lines(
    tree: SourceTree, statements: Sequence[ast.stmt], before: Sequence[ast.stmt]
) -> tuple[list[str], list[ast.stmt]]:
    """The code to write after the anchor, and the statements that leave their old place."""
    wanted = set(assigned_names(statements[-1]))
    lines: list[str] = []
    moved: list[ast.stmt] = []
    for statement in reversed(statements):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not assigned_names(statement):
            raise Unsafe
        parts = _parts(tree, statement, wanted)
        whole = wanted.issuperset(assigned_names(statement)) or not _pairs(statement)
        lines = [text for text, _ in parts] + lines
        wanted = (wanted - {name for _, names in parts for name in names}) | _reads(
            statement, wanted
        )
        if whole and not _read_before(statement, moved, before):
            moved.append(statement)
        elif any_touches(assigned_names(statement), reads_in(statement)):
            raise Unsafe  # a copy of `x = x + 1` would count twice
    return lines, moved


def _pairs(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """Targets and values of `a, b = c, d`; empty for other assignments."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return []
    every = [*target.elts, *value.elts]
    if len(target.elts) != len(value.elts) or any(isinstance(one, ast.Starred) for one in every):
        return []
    bound = binds_in(target)
    if any_touches(bound, reads_in(value)):
        return []  # `a, b = b, a` needs both at once
    return list(zip(target.elts, value.elts, strict=True))


def _parts(tree: SourceTree, statement: ast.stmt, wanted: set[str]) -> list[tuple[str, set[str]]]:
    """The lines to write for a statement, each with the names it binds."""
    pairs = _pairs(statement)
    if pairs:
        return [
            (f"{tree.source(target)} = {tree.source(value)}", binds_in(target))
            for target, value in pairs
            if binds_in(target) & wanted
        ]
    if starts_line(tree, statement) and ends_line(tree, statement):
        return [(moved_text(tree, statement, "").rstrip("\r\n"), set(assigned_names(statement)))]
    return [(tree.source(statement), set(assigned_names(statement)))]


def _reads(statement: ast.stmt, wanted: set[str]) -> set[str]:
    pairs = _pairs(statement)
    if not pairs:
        return reads_in(statement)
    return {
        name for target, value in pairs if binds_in(target) & wanted for name in reads_in(value)
    }


def _read_before(
    statement: ast.stmt, moved: Sequence[ast.stmt], before: Sequence[ast.stmt]
) -> bool:
    """True if something that stays in its place reads what the statement binds."""
    staying = [one for one in before if one not in moved and one is not statement]
    names = assigned_names(statement)
    return any(any_touches(names, reads_in(one)) for one in staying)
