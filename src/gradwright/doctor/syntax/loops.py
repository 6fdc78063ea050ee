"""Move what was built once before a loop to where the loop uses it."""

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
    Access,
    accesses,
    any_touches,
    assigned_names,
    dotted,
    reads_in,
    reads_of,
    touches,
)
from gradwright.doctor.syntax.precedence import Level, fitted, needed_level
from gradwright.doctor.syntax.statements import deleted, inserted_before
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import (
    Loop,
    block_of,
    scope_of,
    sibling_around,
    statement_of,
)


@rewrite
def move_into_loop(tree: SourceTree, statement: ast.stmt, loop: Loop) -> list[Change]:
    """Cut an assignment before a loop and put it first in the body of the loop.

    Refuses if the way into the loop or the loop itself rebinds what the statement reads or
    assigns, if something reads the result on the way, or if the loop does not read it.
    """
    names = assigned_names(statement)
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        raise Unsafe
    if not names or _stores_elsewhere(statement, names) or any_touches(names, reads_in(statement)):
        raise Unsafe
    _check_way(tree, statement, names, loop)
    first = loop.body[0]
    cut = deleted(tree, [statement])
    if starts_line(tree, first) and starts_line(tree, statement) and ends_line(tree, statement):
        at = tree.starts[tree.line_of(first_offset(tree, first)) - 1]
        return [*cut, Change(at, at, moved_text(tree, statement, indentation(tree, first)))]
    return [*cut, *inserted_before(tree, first, [tree.source(statement)])]


def _stores_elsewhere(statement: ast.stmt, names: Sequence[str]) -> bool:
    """True for targets that are not plain names or attributes: `x[i] = …`."""
    bound = [access.name for access in accesses(statement) if access.kind == "bind"]
    subscripts = any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(statement)
    )
    return subscripts or sorted(bound) != sorted(names)


def _check_way(tree: SourceTree, statement: ast.stmt, names: Sequence[str], loop: Loop) -> None:
    """Raise Unsafe unless the statement means the same at the start of the loop's body."""
    scope = scope_of(tree, statement)
    outer = sibling_around(tree, statement, loop)
    block, index = block_of(tree, statement)
    if scope is not scope_of(tree, loop) or outer is None or block.index(outer) <= index:
        raise Unsafe
    way = block[index + 1 : block.index(outer) + 1]
    body, end = tree.start(loop.body[0]), tree.end(loop)
    seen = [access for one in way for access in accesses(one)]
    check_unchanged(statement, seen)
    reads = [_offset(tree, one) for one in seen if one.kind == "read" and _reads(one, names)]
    if any(offset < body for offset in reads):
        raise Unsafe
    if not any(body <= offset < end for offset in reads):
        raise Unsafe
    if _read_by_functions(tree, scope, statement, names):
        raise Unsafe


def check_unchanged(statement: ast.stmt, seen: Sequence[Access]) -> None:
    """Raise Unsafe if one of the accesses rebinds what the statement reads or assigns."""
    needed = {*reads_in(statement), *assigned_names(statement)}
    bound = [access.name for access in seen if access.kind == "bind"]
    if any_touches(bound, needed):
        raise Unsafe


def _reads(access: Access, names: Sequence[str]) -> bool:
    return any(touches(name, access.name) or touches(access.name, name) for name in names)


def _offset(tree: SourceTree, access: Access) -> int:
    assert isinstance(access.node, ast.expr | ast.stmt)
    return tree.start(access.node)


def _read_by_functions(
    tree: SourceTree,
    scope: ast.AST,
    statement: ast.stmt,
    names: Sequence[str],
) -> bool:
    """True if a function defined before the statement reads its result; when is unknown."""
    start = tree.start(statement)
    inner = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and node is not scope
        and tree.start(node) < start
    ]
    return any(
        access.kind == "read" and _reads(access, names)
        for node in inner
        for access in accesses(node)
    )


@rewrite
def inline_into_use(
    tree: SourceTree,
    statement: ast.stmt,
    use: ast.expr,
    indexed: Sequence[int | str] | None = None,
) -> list[Change]:
    """Write the value of an assignment where it is used; delete the assignment if unused then.

    With `indexed`, `use` is `name[index]` and the value a call; the index goes to these
    arguments instead: `features = embed(ids)` and `features[rows]` give `embed(ids[rows])`.
    """
    names = assigned_names(statement)
    if not isinstance(statement, ast.Assign) or len(names) != 1 or len(statement.targets) != 1:
        raise Unsafe
    _check_use(tree, statement, names[0], use)
    text = _value_at(tree, statement, use, indexed)
    new = fitted(text, needed_level(tree, use))
    changes = [Change(tree.start(use), tree.end(use), new)]
    reads = reads_of(scope_of(tree, statement), names[0])
    others = any(not _within(tree, one, use) for one in reads)
    return changes if others else [*changes, *deleted(tree, [statement])]


def _value_at(
    tree: SourceTree, statement: ast.Assign, use: ast.expr, indexed: Sequence[int | str] | None
) -> str:
    """The code to write in the place of `use`."""
    if indexed is not None:
        return _indexed_call(tree, statement, use, indexed)
    if dotted(use) not in assigned_names(statement):
        raise Unsafe
    return tree.text[_value_start(tree, statement) : tree.end(statement)]


def _value_start(tree: SourceTree, statement: ast.Assign) -> int:
    equals = tree.text.index("=", tree.end(statement.targets[0]))
    rest = tree.text[equals + 1 :]
    return equals + 1 + len(rest) - len(rest.lstrip(" \t"))


def _within(tree: SourceTree, inner: ast.expr, outer: ast.expr) -> bool:
    return tree.start(outer) <= tree.start(inner) and tree.end(inner) <= tree.end(outer)


def _check_use(tree: SourceTree, statement: ast.Assign, name: str, use: ast.expr) -> None:
    """Raise Unsafe unless the value means the same where it is used."""
    user = statement_of(tree, use)
    outer = None if user is None else sibling_around(tree, statement, user)
    block, index = block_of(tree, statement)
    if outer is None or block.index(outer) <= index or name not in reads_in(use):
        raise Unsafe
    if scope_of(tree, use) is not scope_of(tree, statement):
        raise Unsafe
    simple = user is outer and isinstance(user, ast.Assign | ast.AugAssign | ast.Expr | ast.Return)
    # What a simple statement binds comes after the use in it.
    way = block[index + 1 : block.index(outer) + (not simple)]
    check_unchanged(statement, [access for one in way for access in accesses(one)])


def _indexed_call(
    tree: SourceTree, statement: ast.Assign, use: ast.expr, indexed: Sequence[int | str]
) -> str:
    """The call that the statement makes, with the index of `use` on the chosen arguments."""
    call = statement.value
    if not isinstance(use, ast.Subscript) or not isinstance(call, ast.Call) or not indexed:
        raise Unsafe
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        raise Unsafe
    index = tree.text[tree.end(use.value) : tree.end(use)]
    start, text = tree.start(call), tree.source(call)
    arguments = [argument_at(call, one) for one in indexed]
    for argument in sorted(arguments, key=tree.start, reverse=True):
        at, end = tree.start(argument) - start, tree.end(argument) - start
        text = text[:at] + fitted(text[at:end], Level.PRIMARY) + index + text[end:]
    return text


def argument_at(call: ast.Call, which: int | str) -> ast.expr:
    """An argument by position or keyword name. Raises Unsafe if it is not written there."""
    if isinstance(which, str):
        found = [keyword.value for keyword in call.keywords if keyword.arg == which]
        if not found:
            raise Unsafe
        return found[0]
    if not 0 <= which < len(call.args):
        raise Unsafe
    if any(isinstance(one, ast.Starred) for one in call.args[: which + 1]):
        raise Unsafe
    return call.args[which]
