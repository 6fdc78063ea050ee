"""Turn an attribute that `__init__` computes once into a property, computed at each use."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import indentation, starts_line
from gradwright.doctor.syntax.names import assigned_names, assignments_to, local_names, reads_in
from gradwright.doctor.syntax.statements import deleted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import scope_of


@rewrite
def make_property(tree: SourceTree, class_node: ast.ClassDef, statement: ast.stmt) -> list[Change]:
    """`self.base = f(self.loc)` in `__init__` to a property `base` that returns `f(self.loc)`.

    Refuses if the value reads arguments or local names of `__init__`, or if the class assigns
    the attribute anywhere else.
    """
    method = scope_of(tree, statement)
    names = assigned_names(statement)
    if not isinstance(statement, ast.Assign) or len(names) != 1 or len(statement.targets) != 1:
        raise Unsafe
    if not isinstance(method, ast.FunctionDef) or method not in class_node.body:
        raise Unsafe
    owner, _, attribute = names[0].partition(".")
    first = [argument.arg for argument in method.args.args][:1]
    if [owner] != first or not attribute.isidentifier():
        raise Unsafe
    if len(assignments_to(class_node, names[0])) != 1 or not starts_line(tree, method):
        raise Unsafe
    if _own_names(method, statement.value, owner):
        raise Unsafe
    return [*deleted(tree, [statement]), _property(tree, method, owner, attribute, statement)]


def _own_names(method: ast.FunctionDef, value: ast.expr, owner: str) -> set[str]:
    """Names of the value that only `__init__` knows."""
    known = set(local_names(method)) - {owner}
    return {name for name in reads_in(value) if name.partition(".")[0] in known}


def _property(
    tree: SourceTree, method: ast.FunctionDef, owner: str, attribute: str, statement: ast.Assign
) -> Change:
    outer, inner = indentation(tree, method), indentation(tree, statement)
    end = tree.newline
    value = tree.source(statement.value)
    text = (
        f"{end}{outer}@property{end}{outer}def {attribute}({owner}):{end}{inner}return {value}{end}"
    )
    at = tree.starts[tree.line_of(tree.end(method))]
    return Change(at, at, text)
