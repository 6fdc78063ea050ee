"""Keep a `with` block of a generator from lasting while the generator waits."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Edits, Unsafe, combine, rewrite
from gradwright.doctor.syntax.contexts import unwrap_with
from gradwright.doctor.syntax.decorators import insert_decorator
from gradwright.doctor.syntax.layout import indentation, moved_text, starts_line
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import With

_DECORATORS = {
    "torch.no_grad": "@torch.no_grad()",
    "torch.inference_mode": "@torch.inference_mode()",
    "torch.set_grad_enabled": "@torch.no_grad()",
}
_MAKERS = {"arange", "dict", "empty", "full", "len", "list", "ones", "rand", "randn", "zeros"}


def decorate_generator(tree: SourceTree, block: With, context: str) -> Edits | None:
    """`with torch.no_grad():` in a generator to the decorator `@torch.no_grad()` on it.

    Torch's decorators know generators: they put grad mode back at each `yield`. Refuses if the
    block has other contexts, or if what stands outside of it may record something.
    """
    function = tree.parents[block]
    if not isinstance(function, ast.FunctionDef) or len(block.items) > 1:
        return None
    outside = [one for one in function.body if one is not block]
    decorator = _DECORATORS.get(context)
    if decorator is None or not all(_records_nothing(one) for one in outside):
        return None
    return combine(tree, unwrap_with(tree, block), insert_decorator(tree, function, decorator))


def _records_nothing(statement: ast.stmt) -> bool:
    """Whether a statement only names values, or makes new ones from plain ones."""
    plain = ast.Expr | ast.Assign | ast.AnnAssign
    inside = [node for node in ast.walk(statement) if isinstance(node, ast.expr)]
    harmless = ast.Constant | ast.Name | ast.Attribute | ast.Tuple | ast.List | ast.Dict
    return isinstance(statement, plain) and all(
        isinstance(node, harmless) or (isinstance(node, ast.Call) and _makes(node))
        for node in inside
    )


def _makes(call: ast.Call) -> bool:
    trains = any(keyword.arg in (None, "requires_grad") for keyword in call.keywords)
    return (dotted(call.func) or "").rpartition(".")[2] in _MAKERS and not trains


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
