"""Turn operations that change a tensor in place into ones that make a new tensor."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.inplace_calls import call_out_of_place, repeatable
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.precedence import Level, fitted, level_of_operator
from gradwright.doctor.syntax.statements import inserted_before
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import statement_of

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.FloorDiv: "//",
}


@rewrite
def out_of_place(
    tree: SourceTree,
    node: ast.stmt | ast.Call,
    *,
    boolean_mask: bool = False,
    sequence: bool = False,
) -> list[Change]:
    """Make the in-place operation of a statement or call one that makes a new tensor.

    `x += e`; `x.mul_(e)`, alone or with a result; `x[i] = e`; `f(x, inplace=True)`;
    `f(x, out=x)`. `boolean_mask`: in `x[mask] = 0` the mask is boolean. `sequence`: in
    `x[i] += e` it is a list or dict that is indexed, so only the element needs a new tensor.
    """
    statement = node
    if isinstance(node, ast.Call):
        statement = statement_of(tree, node) or node
        if not isinstance(statement, ast.Expr) or statement.value is not node:
            return call_out_of_place(tree, node)
    if isinstance(statement, ast.AugAssign):
        if isinstance(statement.target, ast.Subscript) and not sequence:
            return cloned_before(tree, statement, statement.target)
        return _augmented(tree, statement)
    if isinstance(statement, ast.Assign):
        return _assignment(tree, statement, boolean_mask)
    value = statement.value if isinstance(statement, ast.Expr | ast.Return) else None
    if not isinstance(value, ast.Call):
        raise Unsafe
    return call_out_of_place(tree, value)


def _augmented(tree: SourceTree, statement: ast.AugAssign) -> list[Change]:
    """`x *= a + b` to `x = x * (a + b)`."""
    target = repeatable(tree, statement.target)
    sign = _SIGNS[type(statement.op)]
    equals = tree.text.index(f"{sign}=", tree.end(statement.target))
    rest = tree.text[equals + len(sign) + 1 : tree.end(statement)]
    value = rest.lstrip(" \t")
    if value.startswith("\\"):
        raise Unsafe
    level = level_of_operator(statement.op)
    level = level if isinstance(statement.op, ast.Pow) else Level(level + 1)
    gap = tree.text[tree.end(statement.target) : equals] or " "
    return [
        Change(
            tree.start(statement),
            tree.end(statement),
            f"{target} = {target}{gap if gap.isspace() else ' '}{sign} {fitted(value, level)}",
        )
    ]


def _assignment(tree: SourceTree, statement: ast.Assign, boolean_mask: bool) -> list[Change]:
    target = statement.targets[0]
    if isinstance(target, ast.Subscript) and len(statement.targets) == 1:
        if boolean_mask and _is_scalar(statement.value) and not _is_slice(target.slice):
            name = repeatable(tree, target.value)
            mask, value = tree.source(target.slice), tree.source(statement.value)
            text = f"{name} = {name}.masked_fill({mask}, {value})"
            return [Change(tree.start(statement), tree.end(statement), text)]
        return cloned_before(tree, statement, target)
    if not isinstance(statement.value, ast.Call):
        raise Unsafe
    return call_out_of_place(tree, statement.value)


def _is_scalar(value: ast.expr) -> bool:
    """True for a number, with a sign or as `float("inf")`."""
    if isinstance(value, ast.UnaryOp):
        return _is_scalar(value.operand)
    if isinstance(value, ast.Call):
        return dotted(value.func) == "float"
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def _is_slice(index: ast.expr) -> bool:
    return isinstance(index, ast.Slice | ast.Tuple | ast.Constant | ast.UnaryOp)


def cloned_before(tree: SourceTree, statement: ast.stmt, target: ast.Subscript) -> list[Change]:
    """`x = x.clone()` before a statement that writes into `x[i]`."""
    base: ast.expr = target.value
    while isinstance(base, ast.Subscript):
        base = base.value
    name = dotted(base)
    if name is None:
        raise Unsafe
    return inserted_before(tree, statement, [f"{name} = {name}.clone()"])
