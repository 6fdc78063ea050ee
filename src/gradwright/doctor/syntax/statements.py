"""Insert, delete and replace whole statements."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import (
    ends_line,
    first_offset,
    indentation,
    line_end,
    own_lines,
    starts_line,
)
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import block_of

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SIMPLE = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Expr,
    ast.Return,
    ast.Raise,
    ast.Assert,
    ast.Delete,
    ast.Pass,
    ast.Break,
    ast.Continue,
)


@rewrite
def insert_before(tree: SourceTree, statement: ast.stmt, lines: Sequence[str]) -> list[Change]:
    """Insert lines of code, given without indentation, before a statement."""
    return inserted_before(tree, statement, lines)


@rewrite
def insert_after(tree: SourceTree, statement: ast.stmt, lines: Sequence[str]) -> list[Change]:
    """Insert lines of code, given without indentation, after a statement."""
    return inserted_after(tree, statement, lines)


@rewrite
def delete_statement(tree: SourceTree, statement: ast.stmt) -> list[Change]:
    """Delete a statement with its lines; `pass` takes its place in a block left empty."""
    return deleted(tree, [statement])


@rewrite
def replace_statement(tree: SourceTree, statement: ast.stmt, text: str) -> list[Change]:
    """Put one line of code in the place of a statement."""
    return [Change(first_offset(tree, statement), tree.end(statement), text)]


def inserted_before(tree: SourceTree, statement: ast.stmt, lines: Sequence[str]) -> list[Change]:
    """The changes of `insert_before`."""
    start = first_offset(tree, statement)
    if starts_line(tree, statement):
        at = tree.starts[tree.line_of(start) - 1]
        return [Change(at, at, _indented(tree, statement, lines))]
    return [Change(start, start, _on_one_line(statement, lines) + "; ")]


def inserted_after(tree: SourceTree, statement: ast.stmt, lines: Sequence[str]) -> list[Change]:
    """The changes of `insert_after`. Raises Unsafe after a statement that leaves the block."""
    if isinstance(statement, _LEAVES):
        raise Unsafe
    block, _ = block_of(tree, statement)
    if starts_line(tree, block[0]) and ends_line(tree, statement):
        at = line_end(tree, statement)
        lost = tree.newline if tree.text[at - 1] not in "\r\n" else ""
        return [Change(at, at, lost + _indented(tree, block[0], lines))]
    at = tree.end(statement)
    return [Change(at, at, "; " + _on_one_line(statement, lines))]


def deleted(tree: SourceTree, statements: Sequence[ast.stmt]) -> list[Change]:
    """The changes that delete statements of one block."""
    block, _ = block_of(tree, statements[0])
    gone = [one for one in block if one in statements]
    if len(gone) != len(statements):
        raise Unsafe  # not all of one block
    empty = len(gone) == len(block) and not isinstance(tree.parents[gone[0]], ast.Module)
    changes = [_deletion(tree, block, one) for one in (gone[1:] if empty else gone)]
    if empty:
        changes.append(Change(first_offset(tree, gone[0]), tree.end(gone[0]), "pass"))
    return changes


def _deletion(tree: SourceTree, block: list[ast.stmt], statement: ast.stmt) -> Change:
    start, index = first_offset(tree, statement), block.index(statement)
    if starts_line(tree, statement) and ends_line(tree, statement):
        return Change(*own_lines(tree, statement, statement), "")
    if index + 1 < len(block) and not starts_line(tree, block[index + 1]):
        return Change(start, first_offset(tree, block[index + 1]), "")
    if index and ends_line(tree, statement):
        return Change(tree.end(block[index - 1]), tree.end(statement), "")
    raise Unsafe


def _indented(tree: SourceTree, statement: ast.stmt, lines: Sequence[str]) -> str:
    indent = indentation(tree, statement)
    return "".join(f"{indent}{line}{tree.newline}" if line else tree.newline for line in lines)


def _on_one_line(statement: ast.stmt, lines: Sequence[str]) -> str:
    """Simple statements joined by semicolons. Raises Unsafe if one is not simple."""
    if not isinstance(statement, _SIMPLE):
        raise Unsafe
    for line in lines:
        try:
            parsed = ast.parse(line).body
        except SyntaxError as error:
            raise Unsafe from error
        if not all(isinstance(one, _SIMPLE) for one in parsed) or "#" in line:
            raise Unsafe
    return "; ".join(lines)
