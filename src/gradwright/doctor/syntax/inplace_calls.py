"""Calls that change a tensor in place: `x.mul_(e)`, `inplace=True`, `out=x`."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.calls import keyword_of, keyword_removed
from gradwright.doctor.syntax.changes import Change, Unsafe
from gradwright.doctor.syntax.imports import localise
from gradwright.doctor.syntax.names import dotted, is_in_place_method
from gradwright.doctor.syntax.precedence import outer_bounds
from gradwright.doctor.syntax.tree import SourceTree

# Methods whose name without the underscore does not exist or does something else.
WITHOUT_TWIN = frozenset(
    {
        "apply_",
        "cauchy_",
        "copy_",
        "exponential_",
        "fill_",
        "fill_diagonal_",
        "geometric_",
        "log_normal_",
        "map2_",
        "map_",
        "normal_",
        "random_",
        "resize_",
        "resize_as_",
        "resize_as_sparse_",
        "requires_grad_",
        "rename_",
        "set_",
        "share_memory_",
        "sparse_resize_",
        "sparse_resize_and_clear_",
        "uniform_",
        "zero_",
    }
)
# Modules and functions that take `inplace` by position, and where.
_INPLACE_POSITION = {
    **dict.fromkeys(["ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid"], 0),
    **dict.fromkeys(["ELU", "CELU", "LeakyReLU", "Dropout", "Dropout1d", "Dropout2d"], 1),
    **dict.fromkeys(["relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid"], 1),
    **dict.fromkeys(["elu", "celu", "leaky_relu"], 2),
    **dict.fromkeys(["dropout", "dropout1d", "dropout2d"], 3),
}


def call_out_of_place(tree: SourceTree, call: ast.Call) -> list[Change]:
    """The changes that make a call leave its arguments as they are."""
    if keyword_of(call, "out") is not None:
        return _without_out(tree, call)
    if is_in_place_method(call.func):
        return _method(tree, call)
    return [_inplace_off(tree, call)]


def _inplace_off(tree: SourceTree, call: ast.Call) -> Change:
    """`inplace=True` to `inplace=False`, by keyword or position."""
    keyword = keyword_of(call, "inplace")
    value = None if keyword is None else keyword.value
    if value is None:
        name = (dotted(call.func) or "").rpartition(".")[2]
        position = _INPLACE_POSITION.get(name)
        if position is None or position >= len(call.args):
            raise Unsafe
        value = call.args[position]
    if isinstance(value, ast.Constant) and value.value is False:
        raise Unsafe
    return Change(tree.start(value), tree.end(value), "False")


def _without_out(tree: SourceTree, call: ast.Call) -> list[Change]:
    """`torch.add(x, y, out=x)` to `x = torch.add(x, y)`, in front of other targets' value."""
    keyword = keyword_of(call, "out")
    statement = tree.parents[call]
    if keyword is None or not isinstance(statement, ast.Expr | ast.Assign):
        raise Unsafe
    target = repeatable(tree, keyword.value)
    if isinstance(keyword.value, ast.Tuple):
        target = ", ".join(repeatable(tree, element) for element in keyword.value.elts)
    start, _ = outer_bounds(tree, call)
    return [Change(start, start, f"{target} = "), keyword_removed(tree, call, keyword)]


def _method(tree: SourceTree, call: ast.Call) -> list[Change]:
    """`x.mul_(e)` to `x = x.mul(e)`; with a result that is used, only the name changes."""
    if isinstance(tree.parents[call], ast.Expr):
        return _method_statement(tree, call)
    return [_without_underscore(tree, call)]


def _method_statement(tree: SourceTree, call: ast.Call) -> list[Change]:
    chain = [call]
    base: ast.expr = call
    while isinstance(base, ast.Call) and is_in_place_method(base.func):
        assert isinstance(base.func, ast.Attribute)
        chain.append(base)
        base = base.func.value
    target = repeatable(tree, base)
    if not isinstance(base, ast.Name | ast.Attribute | ast.Subscript):
        raise Unsafe
    start, end = tree.start(call), tree.end(call)
    text = _filled(target, tree, call) if len(chain) == 2 else None
    if text is not None:
        text, changes = localise(tree, text)
        return [*changes, Change(start, end, f"{target} = {text}")]
    return [
        Change(start, start, f"{target} = "),
        *(_without_underscore(tree, one) for one in chain[1:]),
    ]


def _filled(target: str, tree: SourceTree, call: ast.Call) -> str | None:
    """The value after `zero_` and `fill_`, which have no twin without underscore."""
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr == "zero_" and not call.args and not call.keywords:
        return f"torch.zeros_like({target})"
    if call.func.attr == "fill_" and len(call.args) == 1 and not call.keywords:
        return f"torch.full_like({target}, {tree.source(call.args[0])})"
    return None


def _without_underscore(tree: SourceTree, call: ast.Call) -> Change:
    assert isinstance(call.func, ast.Attribute)
    if call.func.attr in WITHOUT_TWIN:
        raise Unsafe
    end = tree.end(call.func)
    return Change(end - 1, end, "")


def repeatable(tree: SourceTree, target: ast.expr) -> str:
    """The text of a target that can be written twice: it calls nothing."""
    calls = ast.Call | ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom
    if any(isinstance(node, calls) for node in ast.walk(target)):
        raise Unsafe
    return tree.source(target)
