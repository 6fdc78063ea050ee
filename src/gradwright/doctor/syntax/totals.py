"""Add losses up over a loop and call backward once behind it."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import ends_line, indentation, starts_line
from gradwright.doctor.syntax.losses import receiver_of
from gradwright.doctor.syntax.names import binds_in, reads_in
from gradwright.doctor.syntax.precedence import Level, fitted
from gradwright.doctor.syntax.state import unused_name
from gradwright.doctor.syntax.statements import inserted_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Loop, scope_of


@rewrite
def add_up_in_loop(tree: SourceTree, loop: Loop, backward: ast.stmt) -> list[Change]:
    """`for …: loss.backward()` to `total = total + loss` in the loop and `total.backward()` after.

    Refuses if the loop steps, zeroes or reads gradients.
    """
    if backward not in loop.body or loop.orelse:
        raise Unsafe
    receiver = receiver_of(backward, ("retain_graph",))
    touched = (node for one in loop.body for node in ast.walk(one))
    if any(_concerns_gradients(node) for node in touched if node is not backward):
        raise Unsafe
    if not (starts_line(tree, loop) and starts_line(tree, backward) and ends_line(tree, backward)):
        raise Unsafe
    name = unused_name(scope_of(tree, loop), "total")
    indent, start = indentation(tree, loop), tree.starts[loop.lineno - 1]
    added = f"{name} = {name} + {fitted(tree.source(receiver), Level.PRODUCT)}"
    return [
        Change(start, start, f"{indent}{name} = 0.0{tree.newline}"),
        Change(tree.start(backward), tree.end(backward), added),
        *inserted_after(tree, loop, [f"{name}.backward()"]),
    ]


def _concerns_gradients(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("step", "zero_grad", "grad")


@rewrite
def backward_of_addend(tree: SourceTree, addition: ast.stmt, backward: ast.stmt) -> list[Change]:
    """`total += loss` and `total.backward()` to `total += loss.detach()` and `loss.backward()`."""
    addend = _addend(addition)
    receiver = receiver_of(backward, ("retain_graph", "create_graph"))
    if addend is None or not isinstance(addend, ast.Name | ast.Attribute):
        raise Unsafe
    if scope_of(tree, addition) is not scope_of(tree, backward):
        raise Unsafe
    if not binds_in(addition) & reads_in(receiver):
        raise Unsafe
    text, call = tree.source(addend), _end_of_method(tree, backward)
    return [
        Change(tree.start(addend), tree.end(addend), f"{text}.detach()"),
        Change(tree.start(backward), call, f"{text}.backward"),
    ]


def _end_of_method(tree: SourceTree, backward: ast.stmt) -> int:
    """Where `loss.backward` ends in `loss.backward()`."""
    assert isinstance(backward, ast.Expr) and isinstance(backward.value, ast.Call)
    return tree.end(backward.value.func)


def _addend(addition: ast.stmt) -> ast.expr | None:
    """`loss` in `total += loss` or `total = total + loss`."""
    if isinstance(addition, ast.AugAssign) and isinstance(addition.op, ast.Add):
        return addition.value
    value = addition.value if isinstance(addition, ast.Assign) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = [value.left, value.right]
        bound = binds_in(addition)
        others = [side for side in sides if not reads_in(side) & bound]
        return others[0] if len(others) == 1 else None
    return None
