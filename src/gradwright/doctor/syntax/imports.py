"""Which names a file imports, and how it spells torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import lru_cache

from gradwright.doctor.syntax.changes import Change
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree

_TORCH = re.compile(r"(?<![\w.])torch\.(\w+)")


@lru_cache(maxsize=128)
def imported_names(tree: SourceTree) -> Mapping[str, str]:
    """What each name imported at module level stands for, as a full dotted name."""
    names: dict[str, str] = {}
    for node in _module_level(tree.root):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _module_level(root: ast.Module) -> list[ast.stmt]:
    """The statements outside functions and classes, those under `if` and `try` included."""
    found, waiting = [], list(root.body)
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            waiting += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            ]
    return found


def qualified_name(tree: SourceTree, expression: ast.expr) -> str | None:
    """The full name behind the imports: `th.no_grad` after `import torch as th` is torch.no_grad.

    A name that is not imported stays as written; None if the expression is not a dotted name.
    """
    text = dotted(expression)
    if text is None:
        return None
    first, dot, rest = text.partition(".")
    return imported_names(tree).get(first, first) + dot + rest


def torch_name(tree: SourceTree) -> str | None:
    """The name under which the file imports torch: `torch`, an alias, or None."""
    found = [name for name, full in imported_names(tree).items() if full == "torch"]
    return "torch" if "torch" in found else next(iter(found), None)


def localise(tree: SourceTree, text: str) -> tuple[str, list[Change]]:
    """Code that says `torch.…` in the file's own spelling, and the import it then needs."""
    names = imported_names(tree)
    direct = {full: name for name, full in names.items() if full.startswith("torch.")}
    module = torch_name(tree)

    def spelled(match: re.Match[str]) -> str:
        return direct.get(match[0]) or f"{module or 'torch'}.{match[1]}"

    needs_import = module is None and any(match[0] not in direct for match in _TORCH.finditer(text))
    return _TORCH.sub(spelled, text), [import_line(tree, "import torch")] if needs_import else []


def import_line(tree: SourceTree, statement: str) -> Change:
    """Add an import after the first run of imports, or where the first one would stand."""
    last: ast.stmt | None = None
    for node in tree.root.body:
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if last is not None and not is_import:
            break
        if is_import or (is_docstring and node is tree.root.body[0]):
            last = node
    if last is None:
        at = tree.starts[_first_line(tree.root) - 1]
    else:
        at = tree.starts[last.end_lineno or last.lineno]
    start = tree.newline if at and tree.text[at - 1] not in "\r\n" else ""
    return Change(at, at, f"{start}{statement}{tree.newline}")


def _first_line(root: ast.Module) -> int:
    """The line of the first statement, decorators included."""
    nodes = [node for node in ast.walk(root) if isinstance(node, ast.expr | ast.stmt)]
    return min((node.lineno for node in nodes), default=1)
