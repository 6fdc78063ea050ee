"""What a function forgot to return."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.names import accesses, assigned_names
from gradwright.doctor.syntax.state import returns_of
from gradwright.doctor.syntax.statements import inserted_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, loops_around, scope_of, statement_of


@rewrite
def add_return(tree: SourceTree, function: Function, names: Sequence[str]) -> list[Change]:
    """Append `return a, b` to a function that returns nothing."""
    if not names or any(one.value is not None for one in returns_of(tree, function)):
        raise Unsafe
    return inserted_after(tree, function.body[-1], [f"return {', '.join(names)}"])


def dead_stores(tree: SourceTree, function: Function) -> list[str]:
    """Local names whose last assignment nothing reads, in the order of those assignments."""
    last: dict[str, ast.stmt] = {}
    outer = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    for statement in _assignments(tree, function):
        for name in assigned_names(statement):
            if "." not in name and name not in outer:
                last[name] = statement
    dead = [name for name, one in last.items() if not _read_after(tree, function, name, one)]
    return sorted(
        dead, key=lambda name: (tree.start(last[name]), assigned_names(last[name]).index(name))
    )


def _assignments(tree: SourceTree, function: Function) -> list[ast.stmt]:
    kinds = ast.Assign | ast.AnnAssign | ast.AugAssign
    found = [node for node in ast.walk(function) if isinstance(node, kinds)]
    return sorted((one for one in found if scope_of(tree, one) is function), key=tree.start)


def _read_after(tree: SourceTree, function: Function, name: str, statement: ast.stmt) -> bool:
    """True if a read may see the value: later, in the same loop, or in a function inside."""
    loops = loops_around(tree, statement)
    first = tree.start(loops[-1]) if loops else tree.end(statement)
    reads = [
        access.node
        for child in function.body
        for access in accesses(child)
        if access.kind == "read" and access.name.partition(".")[0] == name
    ]
    return any(
        (tree.start(one) >= first and statement_of(tree, one) is not statement)
        or scope_of(tree, one) is not function
        for one in reads
        if isinstance(one, ast.expr)
    )
