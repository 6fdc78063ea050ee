"""What the source of a custom autograd Function says about its saved tensors."""

import ast
import sys
from collections.abc import Iterator

from torch.autograd.graph import Node

from gradwright.doctor.evidence.targets import Target, target_of_statement
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of


def writes_in_backward(node: Node) -> Iterator[Target]:
    """In-place operations in `backward` on tensors that `forward` saved."""
    found = _backward_of(node)
    if found is None:
        return
    tree, function = found
    saved = _saved_names(function)
    for statement in ast.walk(function):
        if not isinstance(statement, ast.stmt) or statement is function:
            continue
        target = target_of_statement(tree, statement)
        if target is not None and dotted(target.written) in saved:
            yield target


def _backward_of(node: Node) -> tuple[SourceTree, ast.FunctionDef] | None:
    made_for = getattr(type(node), "_forward_cls", None)
    code = getattr(getattr(made_for, "backward", None), "__code__", None)
    module = sys.modules.get(getattr(made_for, "__module__", ""), None)
    file = code.co_filename if code is not None else getattr(module, "__file__", None)
    tree = tree_of(file) if file else None
    if tree is None or code is None:
        return None
    first = code.co_firstlineno  # the line of the first decorator
    for one in ast.walk(tree.root):
        if isinstance(one, ast.FunctionDef) and one.name == "backward" and _begins(one) == first:
            return tree, one
    return None


def _begins(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _saved_names(function: ast.FunctionDef) -> set[str]:
    """Names bound from `ctx.saved_tensors`."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            reads = {dotted(one) or "" for one in ast.walk(node.value)}
            if any(name.endswith(".saved_tensors") for name in reads):
                names.update(assigned_names(node))
    return names
