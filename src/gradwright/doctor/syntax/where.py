"""Questions about places: which statement, function, loop or call stands there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TypeVar, cast

from gradwright.diagnostic.model import Span
from gradwright.doctor.syntax.imports import qualified_name
from gradwright.doctor.syntax.names import assignments_to, dotted
from gradwright.doctor.syntax.tree import Positioned, SourceTree

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
With = ast.With | ast.AsyncWith
Node = TypeVar("Node", bound=ast.AST)

FUNCTIONS: tuple[type[Function], ...] = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS: tuple[type[Loop], ...] = (ast.For, ast.AsyncFor, ast.While)
WITHS: tuple[type[With], ...] = (ast.With, ast.AsyncWith)


def span_of(tree: SourceTree, node: Positioned) -> Span:
    """The Span of a node, in characters."""
    return tree.span(tree.start(node), tree.end(node))


def span_of_bytes(tree: SourceTree, line: int, column: int, end_line: int, end_column: int) -> Span:
    """The Span of a position from `code.co_positions()`, whose columns count bytes."""
    return tree.span(tree.offset(line, column), tree.offset(end_line, end_column))


def statement_at(tree: SourceTree, line: int, column: int | None = None) -> ast.stmt | None:
    """The innermost statement that covers the line, or the character at `column` of it.

    None where `a; b` share the line and no column tells which of them is meant.
    """
    found = _innermost(tree, line, column)
    return found[0] if len(found) == 1 else None


def _innermost(tree: SourceTree, line: int, column: int | None = None) -> list[ast.stmt]:
    """The statements at a place that hold no other one there; several are of one block."""
    at = None if column is None else tree.starts[line - 1] + column
    found = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.stmt)
        and covers_line(node, line)
        and (at is None or tree.start(node) <= at <= tree.end(node))
    ]
    around = {outer for node in found for outer in ancestors(tree, node)}
    return [node for node in found if node not in around]


def shares_line(tree: SourceTree, line: int) -> bool:
    """Whether several statements of one block lie on the line."""
    return len(_innermost(tree, line)) > 1


def any_statement_at(tree: SourceTree, line: int) -> ast.stmt | None:
    """A statement on the line: what lies around it lies around the others there as well."""
    return next(iter(_innermost(tree, line)), None)


def covers_line(node: ast.stmt, line: int) -> bool:
    """True if the statement, its decorators included, covers the line."""
    first = min([node.lineno, *(decorator.lineno for decorator in decorators_of(node))])
    return first <= line <= (node.end_lineno or node.lineno)


def ancestors(tree: SourceTree, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around a node, innermost first."""
    parent = tree.parents.get(node)
    while parent is not None:
        yield parent
        parent = tree.parents.get(parent)


def enclosing(
    tree: SourceTree, node: ast.AST, kinds: type[Node] | tuple[type[Node], ...]
) -> Node | None:
    """The innermost node of these kinds around `node`, itself excluded."""
    return next((outer for outer in ancestors(tree, node) if isinstance(outer, kinds)), None)


def statement_of(tree: SourceTree, node: ast.AST) -> ast.stmt | None:
    """The statement a node belongs to; a statement is its own."""
    return node if isinstance(node, ast.stmt) else enclosing(tree, node, ast.stmt)


def function_at(tree: SourceTree, line: int) -> Function | None:
    """The innermost function around the line, its header included."""
    statement = any_statement_at(tree, line)
    if statement is None or isinstance(statement, FUNCTIONS):
        return statement
    return enclosing(tree, statement, FUNCTIONS)


def class_at(tree: SourceTree, line: int) -> ast.ClassDef | None:
    """The innermost class around the line."""
    statement = any_statement_at(tree, line)
    if statement is None or isinstance(statement, ast.ClassDef):
        return statement
    return enclosing(tree, statement, ast.ClassDef)


def loop_at(tree: SourceTree, line: int) -> Loop | None:
    """The innermost loop around the line within its function."""
    statement = any_statement_at(tree, line)
    if statement is None or isinstance(statement, LOOPS):
        return statement
    return next(iter(loops_around(tree, statement)), None)


def loops_around(tree: SourceTree, node: ast.AST) -> list[Loop]:
    """The loops of the same function around a node, innermost first."""
    return [outer for outer in _around(tree, node) if isinstance(outer, LOOPS)]


def with_statements_around(tree: SourceTree, line: int) -> list[With]:
    """The `with` statements of the same function around a line, innermost first."""
    statement = any_statement_at(tree, line)
    if statement is None:
        return []
    outer = [statement, *_around(tree, statement)]
    return [node for node in outer if isinstance(node, WITHS)]


def scope_of(tree: SourceTree, node: ast.AST) -> Function | ast.Module:
    """The function around a node, or the module."""
    return enclosing(tree, node, FUNCTIONS) or tree.root


def decorators_of(node: ast.AST) -> list[ast.expr]:
    """The decorator expressions of a function or class; none for other nodes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.decorator_list
    return []


def block_of(tree: SourceTree, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
    """The list of statements that holds a statement, and its index in it."""
    for _, value in ast.iter_fields(tree.parents[statement]):
        if isinstance(value, list) and statement in value:
            block = cast("list[ast.stmt]", value)
            return block, block.index(statement)
    raise AssertionError("a statement belongs to a block")


def sibling_around(tree: SourceTree, statement: ast.stmt, inner: ast.AST) -> ast.stmt | None:
    """The statement in the block of `statement` that holds `inner` or is it."""
    block, _ = block_of(tree, statement)
    around = [inner, *ancestors(tree, inner)]
    return next((one for one in block if one in around), None)


def assignments_before(tree: SourceTree, scope: ast.AST, name: str, line: int) -> ast.stmt | None:
    """The last statement above the line that assigns the dotted name.

    None where one of several statements on the line assigns it: it may come before or after.
    """
    found = [one for one in assignments_to(scope, name) if one.lineno <= line]
    beside = [one for one in found if one.lineno == line]
    if beside and shares_line(tree, line):
        return None
    above = found[: len(found) - len(beside)]
    return above[-1] if above else None


def call_at(tree: SourceTree, line: int, function_names: Collection[str]) -> ast.Call | None:
    """The first call that covers the line of a function with one of these names.

    A name is the last part (`checkpoint`), the text (`ckpt.checkpoint`), or the full name behind
    the imports (`torch.utils.checkpoint.checkpoint`). None where `a(); b()` share the line and
    both call one of them.
    """
    calls = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and is_named(tree, node.func, function_names)
    ]
    calls.sort(key=lambda call: (call.lineno != line, -call.lineno, call.col_offset))
    owners = {statement_of(tree, call) for call in calls}.intersection(_innermost(tree, line))
    return calls[0] if calls and len(owners) < 2 else None


def statement_calling(
    tree: SourceTree, line: int, function_names: Collection[str]
) -> ast.stmt | None:
    """The statement on the line that calls one of these; of several on it, not just the first."""
    call = call_at(tree, line, function_names)
    return statement_of(tree, call) if call is not None else statement_at(tree, line)


def is_named(tree: SourceTree, function: ast.expr, names: Collection[str]) -> bool:
    """True if a function expression has one of the names, by last part, text or full name."""
    text = dotted(function)
    last = function.attr if isinstance(function, ast.Attribute) else text
    return any(name in names for name in (last, text, qualified_name(tree, function)) if name)


def expression_at(
    tree: SourceTree, line: int, column: int, end_line: int, end_column: int
) -> ast.expr | None:
    """The expression with exactly these bounds, or the smallest around them; characters, as Span.

    Of several with the same bounds, the outermost.
    """
    if not 0 < line <= end_line <= len(tree.lines):
        return None
    start, end = tree.starts[line - 1] + column, tree.starts[end_line - 1] + end_column
    around = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.expr) and tree.start(node) <= start and end <= tree.end(node)
    ]
    return min(around, key=lambda node: tree.end(node) - tree.start(node), default=None)


def _around(tree: SourceTree, node: ast.AST) -> Iterator[ast.AST]:
    """The nodes around `node` up to its function."""
    for outer in ancestors(tree, node):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        yield outer
