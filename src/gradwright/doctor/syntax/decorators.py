"""Decorators, and the names of contexts in them and in `with` headers."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.imports import localise, qualified_name
from gradwright.doctor.syntax.layout import starts_line
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, With, decorators_of


@rewrite
def insert_decorator(tree: SourceTree, function: Function, text: str) -> list[Change]:
    """Put a decorator directly above `def`, so that it acts innermost.

    Refuses `async def`: a context as decorator ends before the coroutine runs.
    """
    if isinstance(function, ast.AsyncFunctionDef):
        raise Unsafe
    if not function.decorator_list and not starts_line(tree, function):
        raise Unsafe
    text, changes = localise(tree, text.removeprefix("@"))
    start = tree.start(function)
    line = tree.starts[tree.line_of(start) - 1]
    indent = tree.text[line:start]
    return [*changes, Change(line, line, f"{indent}@{text}{tree.newline}")]


@rewrite
def replace_decorator(
    tree: SourceTree, function: Function | ast.ClassDef, old: str, text: str
) -> list[Change]:
    """Replace the decorator named `old`, arguments included, by `text`."""
    decorator = decorator_named(tree, function, old)
    text, changes = localise(tree, text.removeprefix("@"))
    return [*changes, Change(tree.start(decorator), tree.end(decorator), text)]


@rewrite
def remove_decorator(tree: SourceTree, function: Function | ast.ClassDef, old: str) -> list[Change]:
    """Remove the decorator named `old` with its lines."""
    decorator = decorator_named(tree, function, old)
    start = tree.text.rindex("@", 0, tree.start(decorator))
    first, last = tree.line_of(start), tree.line_of(tree.end(decorator))
    return [Change(tree.starts[first - 1], tree.starts[last], "")]


def decorator_named(tree: SourceTree, function: Function | ast.ClassDef, name: str) -> ast.expr:
    """The decorator with this full name. Raises Unsafe if there is none."""
    for decorator in decorators_of(function):
        if context_name(tree, decorator) == name.removesuffix("()"):
            return decorator
    raise Unsafe


def context_name(tree: SourceTree, expression: ast.expr) -> str | None:
    """The full name of a context such as `torch.no_grad`, called or not."""
    called = expression.func if isinstance(expression, ast.Call) else expression
    return qualified_name(tree, called)


@rewrite
def rename_context(tree: SourceTree, where: With | Function, old: str, new: str) -> list[Change]:
    """Rename a context in a `with` header or a decorator list: inference_mode to no_grad.

    Names are full: `torch.inference_mode`. They are found and written as the file spells torch.
    Arguments go if they are the constant True, which is the default.
    """
    if isinstance(where, ast.With | ast.AsyncWith):
        expressions = [item.context_expr for item in where.items]
    else:
        expressions = decorators_of(where)
    old, new = old.removesuffix("()"), new.removesuffix("()")
    found = [one for one in expressions if context_name(tree, one) == old]
    if not found:
        raise Unsafe
    name, changes = localise(tree, new)
    return [*changes, *(_renamed(tree, one, name) for one in found)]


def _renamed(tree: SourceTree, expression: ast.expr, name: str) -> Change:
    if not isinstance(expression, ast.Call):
        return Change(tree.start(expression), tree.end(expression), name)
    values = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    if not all(isinstance(one, ast.Constant) and one.value is True for one in values):
        raise Unsafe
    return Change(tree.start(expression), tree.end(expression), f"{name}()")
