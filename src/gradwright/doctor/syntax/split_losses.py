"""One backward before a loop in place of one per pass, where the loop does more than that."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import ends_line, indentation, starts_line
from gradwright.doctor.syntax.losses import receiver_of
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.precedence import Level, fitted
from gradwright.doctor.syntax.state import unused_name
from gradwright.doctor.syntax.statements import deleted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Loop, block_of, scope_of


@rewrite
def sum_losses_first(tree: SourceTree, loop: Loop, backward: ast.stmt) -> list[Change]:
    """`for loss in f(): loss.backward(); log(loss)` to one backward of the sum, then the loop.

    Refuses if the loop steps or zeroes gradients between its backwards.
    """
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        raise Unsafe
    if backward not in loop.body or len(loop.body) < 2:
        raise Unsafe
    receiver = receiver_of(backward, ("retain_graph",))
    if dotted(receiver) != loop.target.id or _touches_gradients(loop, backward):
        raise Unsafe
    if not (starts_line(tree, loop) and starts_line(tree, backward) and ends_line(tree, backward)):
        raise Unsafe
    block_of(tree, loop)
    name = unused_name(scope_of(tree, loop), "losses")
    indent, start = indentation(tree, loop), tree.starts[loop.lineno - 1]
    given = fitted(tree.source(loop.iter), Level.TEST)
    lines = f"{indent}{name} = list({given}){tree.newline}"
    lines += f"{indent}sum({name}).backward(){tree.newline}"
    header = Change(tree.start(loop.iter), tree.end(loop.iter), name)
    return [Change(start, start, lines), header, *deleted(tree, [backward])]


def _touches_gradients(loop: ast.For, backward: ast.stmt) -> bool:
    for statement in loop.body:
        if statement is backward:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and node.attr in ("step", "zero_grad", "grad"):
                return True
    return False
