"""From `torch.nn.utils.weight_norm` to `torch.nn.utils.parametrizations.weight_norm`."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.imports import qualified_name
from gradwright.doctor.syntax.tree import SourceTree

_OLD = "torch.nn.utils"


@rewrite
def use_parametrization(tree: SourceTree, name: str) -> list[Change]:
    """Import or spell every use of the function `name` from the newer module."""
    changes: list[Change] = []
    for node in ast.walk(tree.root):
        if isinstance(node, ast.ImportFrom) and node.module == _OLD and not node.level:
            changes += _import_changed(tree, node, name)
        elif isinstance(node, ast.Attribute) and qualified_name(tree, node) == f"{_OLD}.{name}":
            end = tree.end(node.value)
            changes.append(Change(end, end, ".parametrizations"))
    return changes


def _import_changed(tree: SourceTree, node: ast.ImportFrom, name: str) -> list[Change]:
    found = [alias for alias in node.names if alias.name == name]
    if not found:
        return []
    if len(node.names) > 1:
        raise Unsafe  # the other names stay where they are
    at = tree.text.index(_OLD, tree.start(node)) + len(_OLD)
    return [Change(at, at, ".parametrizations")]
