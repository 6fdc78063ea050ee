"""Wrap, replace and strip expressions."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.precedence import (
    Level,
    fitted,
    level_of,
    needed_level,
    outer_bounds,
)
from gradwright.doctor.syntax.statements import inserted_after
from gradwright.doctor.syntax.tree import SourceTree

_PLACE = "gradwright_place"


@rewrite
def wrap_value(
    tree: SourceTree, statement: ast.stmt, template: str, element: int | str | None = None
) -> list[Change]:
    """Put the value of a return, assignment or expression statement into `template`.

    `"{}"` in the template stands for the value, which gets parentheses only where needed.
    `element` chooses one of a tuple, by index or by the name it is assigned to; a name assigned
    from a value that is not written as a tuple is wrapped on a line after the statement.
    """
    return value_wrapped(tree, statement, template, element)


def value_wrapped(
    tree: SourceTree, statement: ast.stmt, template: str, element: int | str | None = None
) -> list[Change]:
    """The changes of `wrap_value`."""
    if not isinstance(
        statement, ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr
    ):
        raise Unsafe
    value = statement.value
    if value is None:
        raise Unsafe
    if element is None:
        return [wrapped(tree, value, template)]
    index = _index_of(statement, element)
    if index is None:
        return [wrapped(tree, value, template)]
    if isinstance(value, ast.Tuple | ast.List):
        starred = any(isinstance(one, ast.Starred) for one in value.elts[: index + 1])
        if starred or not -len(value.elts) <= index < len(value.elts):
            raise Unsafe
        return [wrapped(tree, value.elts[index], template)]
    if isinstance(element, int):
        raise Unsafe
    return inserted_after(tree, statement, [f"{element} = {filled(template, element)}"])


def _index_of(statement: ast.stmt, element: int | str) -> int | None:
    """The index of the element; None if the name is the only target."""
    if isinstance(element, int):
        return element
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        targets = statement.targets
    else:
        raise Unsafe
    if dotted(targets[0]) == element:
        return None
    elements = targets[0].elts if isinstance(targets[0], ast.Tuple | ast.List) else []
    if any(isinstance(one, ast.Starred) for one in elements):
        raise Unsafe
    names = [dotted(one) for one in elements]
    if names.count(element) != 1:
        raise Unsafe
    return names.index(element)


@rewrite
def wrap_expression(tree: SourceTree, expression: ast.expr, template: str) -> list[Change]:
    """Put an expression into `template`, where `"{}"` stands for it: `"{}.detach()"`."""
    return [wrapped(tree, expression, template)]


@rewrite
def append_method(tree: SourceTree, expression: ast.expr, call: str) -> list[Change]:
    """Call a method on an expression: `".detach()"`."""
    return [wrapped(tree, expression, "{}" + call)]


@rewrite
def strip_method(tree: SourceTree, expression: ast.expr, method: str) -> list[Change]:
    """Take the last call of a method away: `x.exp()` to `x`."""
    return [method_stripped(tree, expression, method)]


@rewrite
def replace_expression(tree: SourceTree, expression: ast.expr, text: str) -> list[Change]:
    """Put other code in the place of an expression, in parentheses if it needs them there."""
    new = fitted(text, needed_level(tree, expression))
    return [Change(tree.start(expression), tree.end(expression), new)]


def wrapped(tree: SourceTree, expression: ast.expr, template: str) -> Change:
    """The change of `wrap_expression`."""
    start, end = outer_bounds(tree, expression)
    if isinstance(expression, ast.Starred):
        raise Unsafe
    text = filled(template, tree.text[start:end])
    level = needed_level(tree, expression)
    already = start < tree.start(expression) and level_of(text) < Level.TEST
    return Change(start, end, f"({text})" if already else fitted(text, level))


def method_stripped(tree: SourceTree, expression: ast.expr, method: str) -> Change:
    """The change of `strip_method`."""
    called = isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute)
    if not called:
        raise Unsafe
    assert isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute)
    if expression.func.attr != method:
        raise Unsafe
    return Change(outer_bounds(tree, expression.func.value)[1], tree.end(expression), "")


def filled(template: str, text: str) -> str:
    """The template with the expression in its place, with parentheses only where needed."""
    pattern = template.replace("({})", f"({_PLACE})").replace("{}", _PLACE)
    try:
        parsed = ast.parse(pattern.strip(), mode="eval").body
    except SyntaxError as error:
        raise Unsafe from error
    for parent in ast.walk(ast.Expression(parsed)):
        for child in ast.iter_child_nodes(parent):
            if isinstance(child, ast.Name) and child.id == _PLACE:
                return _placed(pattern, text, parent)
    raise Unsafe


def _placed(pattern: str, text: str, parent: ast.AST) -> str:
    optional = f"({_PLACE})"
    is_argument = isinstance(parent, ast.Call) and not (
        isinstance(parent.func, ast.Name) and parent.func.id == _PLACE
    )
    if isinstance(parent, ast.Expression):
        level = Level.TUPLE
    else:
        level = Level.TEST if is_argument or isinstance(parent, ast.keyword) else Level.PRIMARY
    if is_argument or optional not in pattern:
        return pattern.replace(_PLACE, fitted(text, level))
    return pattern.replace(optional, fitted(text, level))
