"""Store what a loop computes for each part of a state back into the state."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.state import unused_name
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import scope_of


@rewrite
def store_back(tree: SourceTree, loop: ast.For, assignment: ast.Assign) -> list[Change]:
    """`for part in parts: part = f(part)` to `for i, part in enumerate(parts): parts[i] = …`.

    `.values()` and `.items()` of a dict likewise. Refuses other iterables.
    """
    target = assignment.targets[0]
    name = dotted(target)
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and not over.args:
        owner, kind = dotted(over.func.value), over.func.attr
    else:
        owner, kind = dotted(over), "list"
    if owner is None or name is None or kind not in ("list", "values", "items"):
        raise Unsafe
    start, end = tree.start(target), tree.end(target)
    if kind == "items":
        pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
        if len(pair) != 2 or dotted(pair[1]) != name or (key := dotted(pair[0])) is None:
            raise Unsafe
        return [Change(start, end, f"{owner}[{key}]")]
    if dotted(loop.target) != name:
        raise Unsafe
    key = unused_name(scope_of(tree, loop), "key" if kind == "values" else "index")
    items = f"{owner}.items()" if kind == "values" else f"enumerate({owner})"
    return [
        Change(tree.start(loop.target), tree.end(loop.iter), f"{key}, {name} in {items}"),
        Change(start, end, f"{owner}[{key}]"),
    ]
