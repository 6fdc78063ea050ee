"""Turn an attribute that `__init__` computes once into a property, computed at each use."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.layout import indentation, starts_line
from gradwright.doctor.syntax.names import (
    assigned_names,
    assignments_to,
    binds_in,
    dotted,
    local_names,
    reads_in,
)
from gradwright.doctor.syntax.statements import deleted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import scope_of

_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@rewrite
def make_property(tree: SourceTree, class_node: ast.ClassDef, statement: ast.stmt) -> list[Change]:
    """`self.base = f(self.loc)` in `__init__` to a property `base` that returns `f(self.loc)`.

    Arguments of `__init__` that the value reads are stored under their names. Refuses if the
    value reads other local names of `__init__`, or if the class assigns one of these attributes
    anywhere else.
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
    arguments = _arguments_read(tree, class_node, method, statement.value, owner)
    return [
        _stored(tree, statement, owner, arguments),
        _property(tree, method, owner, attribute, statement, arguments),
    ]


def _arguments_read(
    tree: SourceTree, class_node: ast.ClassDef, method: ast.FunctionDef, value: ast.expr, owner: str
) -> list[ast.Name]:
    """The arguments of `__init__` in the value; raises Unsafe if it reads other names of it."""
    known = set(local_names(method)) - {owner}
    read = {name.partition(".")[0] for name in reads_in(value)} & known
    plain = {argument.arg for argument in method.args.args}
    if read and (method.name != "__init__" or not read <= plain):
        raise Unsafe
    if any(assignments_to(method, name) for name in read) or read & binds_in(value):
        raise Unsafe
    if any(f"{owner}.{name}" in _attributes_of(class_node, owner) for name in read):
        raise Unsafe
    found = [node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in read]
    if any(isinstance(node, _SCOPES) for node in ast.walk(value)) and found:
        raise Unsafe  # the name may mean something else inside
    return sorted(found, key=tree.start)


def _attributes_of(class_node: ast.ClassDef, owner: str) -> set[str]:
    """What the class uses as attributes of its objects, its methods included."""
    methods = (node for node in class_node.body if isinstance(node, ast.FunctionDef))
    named = {f"{owner}.{method.name}" for method in methods}
    return named | {name for node in ast.walk(class_node) if (name := dotted(node)) is not None}


def _stored(tree: SourceTree, statement: ast.stmt, owner: str, arguments: list[ast.Name]) -> Change:
    names = list(dict.fromkeys(node.id for node in arguments))
    if not names:
        (change,) = deleted(tree, [statement])
        return change
    indent = indentation(tree, statement)
    lines = f"{tree.newline}{indent}".join(f"{owner}.{name} = {name}" for name in names)
    return Change(tree.start(statement), tree.end(statement), lines)


def _property(
    tree: SourceTree,
    method: ast.FunctionDef,
    owner: str,
    attribute: str,
    statement: ast.Assign,
    arguments: list[ast.Name],
) -> Change:
    outer, inner = indentation(tree, method), indentation(tree, statement)
    end = tree.newline
    start, value = tree.start(statement.value), tree.source(statement.value)
    for node in reversed(arguments):
        at = tree.start(node) - start
        value = f"{value[:at]}{owner}.{value[at:]}"
    text = (
        f"{end}{outer}@property{end}{outer}def {attribute}({owner}):{end}{inner}return {value}{end}"
    )
    at = tree.starts[tree.line_of(tree.end(method))]
    return Change(at, at, text)
