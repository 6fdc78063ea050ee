"""End a `with` block earlier: take its last statements out of it."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import indentation, moved_text, starts_line
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import With


@rewrite
def yields_outside(tree: SourceTree, block: With) -> list[Change]:
    """Move what yields, and all that follows it, behind the block."""
    first = next((i for i, one in enumerate(block.body) if _yields(one)), None)
    if first is None or first == 0:
        raise Unsafe
    moved = block.body[first:]
    if not all(starts_line(tree, one) for one in moved):
        raise Unsafe
    indent = indentation(tree, block)
    start = tree.starts[moved[0].lineno - 1]
    last = tree.line_of(tree.end(moved[-1]))
    end = tree.starts[last] if last < len(tree.starts) else len(tree.text)
    text = "".join(moved_text(tree, one, indent) for one in moved)
    return [Change(start, end, text)]


def _yields(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))
