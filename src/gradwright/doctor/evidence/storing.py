"""The lines that put something into a collection, and those that take something out."""

import ast
import sys

from gradwright.doctor.evidence.holders import Holder
from gradwright.doctor.journal import Site
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import tree_of

TAKING = {"pop", "popleft", "popitem"}
ADDING = {"append", "appendleft", "add", "extend", "insert", "setdefault", "update"}
_FEW = 3  # more lines than that add to a collection: none of them is the one


def storing_lines(stack: tuple[Site, ...], holder: Holder) -> list[Site]:
    """The lines that add to the collection: `keys.append(key)`, `bank[i] = key`."""
    file = _file_of(holder)
    tree = tree_of(file)
    if tree is None:
        return []
    name = holder.attribute or holder.root
    lines = {
        node.lineno
        for node in ast.walk(tree.root)
        if isinstance(node, ast.Call | ast.Assign) and _adds_to(node, name)
    }
    if len(lines) > _FEW:
        return []
    code = stack[0].code if stack else holder.frame.code
    return [Site(file, line, "", code) for line in sorted(lines)]


def is_shortened(holder: Holder) -> bool:
    """Whether the program takes single items out of the collection: a window, kept on purpose."""
    tree = tree_of(_file_of(holder))
    name = holder.attribute or holder.root
    return tree is not None and any(_takes_from(node, name) for node in ast.walk(tree.root))


def _file_of(holder: Holder) -> str:
    kind = sys.modules.get(type(holder.owner).__module__) if holder.attribute else None
    return getattr(kind, "__file__", None) or holder.frame.file


def _takes_from(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Delete):
        items = (target for target in node.targets if isinstance(target, ast.Subscript))
        return any(_last(dotted(target.value)) == name for target in items)
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(function, ast.Attribute) or function.attr not in TAKING:
        return False
    return _last(dotted(function.value)) == name


def _adds_to(node: ast.Call | ast.Assign, name: str) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr not in ADDING:
            return False
        return _last(dotted(function.value)) == name
    targets = [each for target in node.targets for each in getattr(target, "elts", [target])]
    subscripts = (target for target in targets if isinstance(target, ast.Subscript))
    return any(_last(dotted(target.value)) == name for target in subscripts)


def _last(name: str | None) -> str:
    return (name or "").rpartition(".")[2]
