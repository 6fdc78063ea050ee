"""Move an operation from where an attribute is made to where it is read."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.expressions import method_stripped, wrapped
from gradwright.doctor.syntax.names import accesses, dotted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import FUNCTIONS


@rewrite
def delay_method(
    tree: SourceTree, class_node: ast.ClassDef, attribute: str, statement: ast.stmt
) -> list[Change]:
    """`self.scale = nn.Parameter(x).exp()` to `nn.Parameter(x)`, and `.exp()` at every read.

    The method takes constants only. Refuses if the class binds the attribute elsewhere, or asks
    the parameter itself for something (`self.scale.data`).
    """
    name = f"self.{attribute}"
    call = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        raise Unsafe
    if not _constant(call):
        raise Unsafe
    template = "{}" + tree.text[tree.end(call.func.value) : tree.end(call)].lstrip(") \t")
    reads = _reads(tree, class_node, name, statement)
    changes = [wrapped(tree, read, template) for read in reads]
    return [method_stripped(tree, call, call.func.attr), *changes]


def _constant(call: ast.Call) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(one, ast.Constant) for one in values)


def _reads(
    tree: SourceTree, class_node: ast.ClassDef, name: str, statement: ast.stmt
) -> list[ast.expr]:
    """Every read of the attribute in the class. Raises Unsafe if one cannot take the method."""
    own = [access for access in accesses(statement) if access.kind == "bind"]
    found: list[ast.expr] = []
    for method in class_node.body:
        body = method.body if isinstance(method, FUNCTIONS) else [method]
        for access in (access for child in body for access in accesses(child)):
            node = _base(access.node, name)
            if node is None:
                continue
            if access.kind == "bind" and access not in own:
                raise Unsafe
            if access.kind == "read":
                found.append(_checked(tree, node))
    if not found:
        raise Unsafe
    return found


def _base(node: ast.AST, name: str) -> ast.expr | None:
    """`self.scale` within `self.scale.data`, a call on it or itself."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and dotted(inner) == name:
            return inner
    return None


def _checked(tree: SourceTree, node: ast.expr) -> ast.expr:
    parent = tree.parents[node]
    called = isinstance(parent, ast.Attribute) and isinstance(tree.parents[parent], ast.Call)
    if isinstance(parent, ast.Attribute) and not called:
        raise Unsafe  # `.data`, `.grad`: these are of the parameter
    return node
