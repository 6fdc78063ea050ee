"""Fixes for an operation that cut the graph off."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit, Fix, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.spans import span_of_operation
from gradwright.doctor.journal import Operation
from gradwright.doctor.repairs.hard_choices import soften
from gradwright.doctor.syntax.expressions import replace_expression, strip_method
from gradwright.doctor.syntax.imports import qualified_name
from gradwright.doctor.syntax.names import assignments_to
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.undetach import use_history
from gradwright.doctor.syntax.where import expression_at, scope_of

Edits = tuple[Edit, ...]
_MAKERS = {"tensor", "as_tensor", "Tensor", "FloatTensor", "DoubleTensor", "asarray", "from_numpy"}
_VALUES = {"item", "tolist", "numpy"}


def fixes_for_cut(crash: Crash, cut: Operation) -> tuple[Fix, ...]:
    """What to write so that the graph goes on at a cut."""
    expression = expression_of(span_of_operation(crash.journal, cut))
    if expression is None:
        return _words(cut.cut)
    tree, node = expression
    ways = _ways(crash, tree, node, cut)
    found = tuple(Fix(title, edits) for title, edits in ways if edits)
    return found[:2] or _words(cut.cut)


def expression_of(span: Span | None) -> tuple[SourceTree, ast.expr] | None:
    """The expression with the bounds of a span."""
    tree = tree_of(span.file) if span is not None else None
    if tree is None or span is None or span.end_line is None or span.end_column is None:
        return None
    node = expression_at(tree, span.line, span.column, span.end_line, span.end_column)
    return None if node is None else (tree, node)


def _ways(
    crash: Crash, tree: SourceTree, node: ast.expr, cut: Operation
) -> Iterator[tuple[str, Edits | None]]:
    if cut.cut in ("detach", "data"):
        yield "keep the graph", without_detach(tree, node)
    elif cut.cut == "copy":
        yield "join the tensors instead of copying their values", _joined(crash, tree, node, cut)
    else:
        yield from soften(crash, tree, node, cut)


def without_detach(tree: SourceTree, node: ast.expr) -> Edits | None:
    """`x.detach()` or `x.data` as `x`, where attributes are made of it only where it is read."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return replace_expression(tree, node, tree.source(node.value))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args:
        return None
    detaches = node.func.attr in ("detach", "detach_")
    return use_history(tree, node) or strip_method(tree, node, node.func.attr) if detaches else None


def _joined(crash: Crash, tree: SourceTree, node: ast.expr, cut: Operation) -> Edits | None:
    """`torch.tensor([a, b])` as `torch.stack([a, b])`; `torch.tensor(a)` as `a`."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    given = node.args[0]
    parents = [crash.journal.operations[index] for index in cut.parents]
    shapes = {parent.shape for parent in parents if parent is not None}
    if is_list(tree, given):
        if has_numbers(given):
            return None
        join = "stack" if shapes <= {()} else "cat"
        torch_name = module_of(tree, node)
        return replace_expression(tree, node, f"{torch_name}.{join}({tree.source(given)})")
    return replace_expression(tree, node, tree.source(given)) if len(parents) == 1 else None


def is_list(tree: SourceTree, node: ast.expr) -> bool:
    """Whether an expression is a list as the source shows it: written, made by `list`, or named."""
    if isinstance(node, ast.List | ast.ListComp | ast.Tuple):
        return True
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("list", "sorted", "tuple")
    if not isinstance(node, ast.Name):
        return False
    made = assignments_to(scope_of(tree, node), node.id)
    values = [one.value for one in made if isinstance(one, ast.Assign | ast.AnnAssign)]
    return any(isinstance(value, ast.List | ast.ListComp) for value in values)


def has_numbers(node: ast.expr) -> bool:
    """Whether a written list holds plain numbers, which cannot be joined to tensors."""
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else []
    plain = [item.operand if isinstance(item, ast.UnaryOp) else item for item in items]
    return any(isinstance(item, ast.Constant) for item in plain)


def module_of(tree: SourceTree, call: ast.Call) -> str:
    """How a call names torch: the text before `.tensor`."""
    if isinstance(call.func, ast.Attribute) and qualified_name(tree, call.func.value) == "torch":
        return tree.source(call.func.value)
    return "torch"


def _words(cut: str) -> tuple[Fix, ...]:
    words = {
        "detach": "give the loss the tensor that was not detached",
        "data": "give the loss the tensor itself, not its `.data`",
        "copy": "join the tensors with `torch.stack` or `torch.cat`",
        "integer": "compute the loss from the scores, before they become integers",
        "passage": "do this computation with torch operations on the tensors themselves",
    }
    return (Fix(words.get(cut, "use an operation that has a derivative")),)
