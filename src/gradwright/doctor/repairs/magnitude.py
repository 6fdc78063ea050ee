"""Take the magnitude of complex values before they become a loss."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.evidence.complexity import Square
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.syntax import Edits, SourceTree, replace_expression, wrap_expression

_TITLE = "take the magnitude first:"
_REDUCTIONS = {"mean", "sum"}


def fixes_for_complex(square: Square | None, made: Line | None) -> tuple[Fix, ...]:
    """`.abs()` below the square, else below the reduction, else on the value."""
    if square is not None:
        return (Fix(_TITLE, _below_square(square.line) or ()),)
    return (Fix(_TITLE, (_below_reduction(made) if made is not None else None) or ()),)


def _below_square(line: Line) -> Edits | None:
    tree, expression = line.tree, line.expression
    if tree is None or expression is None:
        return None
    base = _base(expression)
    if base is None:
        return None
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mult):
        return _of_product(tree, expression)
    return wrap_expression(tree, base, "{}.abs()")


def _base(expression: ast.expr) -> ast.expr | None:
    """What is squared: of `x ** 2`, `x.pow(2)`, `torch.square(x)`, `x * x`."""
    if isinstance(expression, ast.BinOp):
        return expression.left
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Attribute):
        return None
    owner = expression.func.value
    is_module = isinstance(owner, ast.Name) and len(expression.args) > (
        0 if expression.func.attr == "square" else 1
    )
    return expression.args[0] if is_module else owner


def _of_product(tree: SourceTree, product: ast.BinOp) -> Edits | None:
    text = tree.source(product.left)
    if text != tree.source(product.right):
        return None
    if not isinstance(product.left, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        text = f"({text})"
    return replace_expression(tree, product, f"{text}.abs() ** 2")


def _below_reduction(line: Line) -> Edits | None:
    tree, expression = line.tree, line.expression
    if tree is None or expression is None:
        return None
    function = expression.func if isinstance(expression, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr in _REDUCTIONS:
        assert isinstance(expression, ast.Call)
        module = isinstance(function.value, ast.Name) and bool(expression.args)
        return wrap_expression(tree, expression.args[0] if module else function.value, "{}.abs()")
    return wrap_expression(tree, expression, "{}.abs()")
