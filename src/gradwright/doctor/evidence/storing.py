"""The lines that put something into a collection."""

import ast
import sys

from gradwright.doctor.evidence.holders import Holder
from gradwright.doctor.journal import Site
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import tree_of

ADDING = {"append", "appendleft", "add", "extend", "insert", "setdefault", "update"}
_FEW = 3  # more lines than that add to a collection: none of them is the one


def storing_lines(stack: tuple[Site, ...], holder: Holder) -> list[Site]:
    """The lines that add to the collection: `keys.append(key)`, `bank[i] = key`."""
    kind = sys.modules.get(type(holder.owner).__module__) if holder.attribute else None
    file = getattr(kind, "__file__", None) or holder.frame.file
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
