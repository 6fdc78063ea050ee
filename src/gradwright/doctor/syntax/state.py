"""Cut the graph of a state that is carried from one step to the next."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.expressions import filled, wrapped
from gradwright.doctor.syntax.names import assigned_names, binds_in, dotted, reads_in, reads_of
from gradwright.doctor.syntax.statements import inserted_after, inserted_before
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, block_of, scope_of

DETACHED = {
    "tensor": "{}.detach()",
    "tuple": "tuple(t.detach() for t in {})",
    "list": "[t.detach() for t in {}]",
    "dict": "dict((k, t.detach()) for k, t in {}.items())",
}


@rewrite
def detach_after_store(
    tree: SourceTree, statement: ast.stmt, target: str, kind: str
) -> list[Change]:
    """Detach a state where it is stored: in the value if it is the only target, else right after.

    `kind` is what the state is: "tensor", or a flat "tuple", "list" or "dict" of tensors. Refuses
    other kinds, and a state that the scope reads again afterwards: its gradient may be wanted.
    """
    template = DETACHED.get(kind)
    if template is None or target not in assigned_names(statement):
        raise Unsafe
    if _read_again(tree, statement, target):
        raise Unsafe
    only = isinstance(statement, ast.Assign | ast.AnnAssign) and assigned_names(statement) == [
        target
    ]
    if only and isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        return [wrapped(tree, statement.value, template)]
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        raise Unsafe
    return inserted_after(tree, statement, [f"{target} = {filled(template, target)}"])


def _read_again(tree: SourceTree, statement: ast.stmt, target: str) -> bool:
    """True if the scope reads the target after the statement, before it is bound anew."""
    block, index = block_of(tree, statement)
    later = [one for one in block[index + 1 :] if target in assigned_names(one)]
    rebound = [one for one in later if isinstance(one, ast.Assign) and target not in reads_in(one)]
    stop = tree.start(rebound[0]) if rebound else len(tree.text)
    reads = reads_of(scope_of(tree, statement), target)
    return any(tree.end(statement) <= tree.start(one) < stop for one in reads)


@rewrite
def detach_reads(tree: SourceTree, statement: ast.stmt, name: str, kind: str) -> list[Change]:
    """Detach a state in each place where a statement reads it whole."""
    template = DETACHED.get(kind)
    reads = [one for one in reads_of(statement, name) if dotted(one) == name]
    grows = isinstance(statement, ast.AugAssign) and dotted(statement.target) == name
    if template is None or not reads or grows:
        raise Unsafe
    return [wrapped(tree, one, template) for one in reads]


@rewrite
def insert_at_function_end(
    tree: SourceTree, function: Function, lines: Sequence[str]
) -> list[Change]:
    """Run lines at the end of a function, before its last return.

    If that return reads a name the lines bind, its value is computed first. Refuses a function
    with other returns or one that ends by raising: the lines would not always run.
    """
    return at_function_end(tree, function, lines)


@rewrite
def detach_at_function_end(
    tree: SourceTree, function: Function, target: str, kind: str
) -> list[Change]:
    """Detach a state at the end of the function, after its last use in it."""
    template = DETACHED.get(kind)
    if template is None:
        raise Unsafe
    return at_function_end(tree, function, [f"{target} = {filled(template, target)}"])


def at_function_end(tree: SourceTree, function: Function, lines: Sequence[str]) -> list[Change]:
    """The changes of `insert_at_function_end`."""
    last = function.body[-1]
    leaving = [one for one in returns_of(tree, function) if one is not last]
    if leaving or isinstance(last, ast.Raise):
        raise Unsafe
    if not isinstance(last, ast.Return):
        return inserted_after(tree, last, lines)
    if last.value is None or not _concerned(last.value, lines):
        return inserted_before(tree, last, lines)
    name = unused_name(function, "result")
    text = tree.text[tree.start(last) + len("return") : tree.end(last)].lstrip()
    first, *rest = [f"{name} = {text}", *lines]
    if "\n" in text or "\r" in text:
        raise Unsafe
    changes = inserted_before(tree, last, [first, *rest])
    return [*changes, Change(tree.start(last), tree.end(last), f"return {name}")]


def returns_of(tree: SourceTree, function: Function) -> list[ast.Return]:
    """The return statements of a function, without those of functions inside it."""
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [node for node in returns if scope_of(tree, node) is function]


def _concerned(value: ast.expr, lines: Sequence[str]) -> bool:
    """True if the value reads a name the lines bind, or calls something that may read it."""
    bound = binds_in(ast.parse("\n".join(lines)))
    reads = reads_in(value)
    calls = any(isinstance(node, ast.Call) for node in ast.walk(value))
    return calls or any(
        read == name or read.startswith(f"{name}.") or name.startswith(f"{read}.")
        for read in reads
        for name in bound
    )


def unused_name(function: ast.AST, name: str) -> str:
    """A name that the function does not use yet: `result`, else `result_2` and so on."""
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    used |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}_{number}"
    return free
