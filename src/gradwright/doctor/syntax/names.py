"""Which names a piece of code reads and binds, with Python's scopes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Binder = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class Access:
    """One read or binding of a dotted name such as `self.memory`."""

    name: str
    kind: Literal["read", "bind"]
    node: ast.AST


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` for a name or a chain of attributes on one, else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def reads_in(node: ast.AST) -> set[str]:
    """The dotted names a piece of code reads from outside itself or binds and reads."""
    return {access.name for access in accesses(node) if access.kind == "read"}


def binds_in(node: ast.AST) -> set[str]:
    """The dotted names a piece of code binds, writes into by index, or changes by `x.op_()`."""
    return {access.name for access in accesses(node) if access.kind == "bind"}


def touches(bound: str, name: str) -> bool:
    """True if binding `bound` changes what `name` means: the same, or something under it."""
    return name == bound or name.startswith(f"{bound}.")


def any_touches(bound: Iterable[str], names: Iterable[str]) -> bool:
    """True if binding one of `bound` changes one of `names`."""
    names = list(names)
    return any(touches(one, name) for one in bound for name in names)


def assigned_names(statement: ast.stmt) -> list[str]:
    """The dotted names an assignment, loop header or `with` binds, as written, left to right."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor):
        targets = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in statement.items if item.optional_vars]
    return [name for target in targets for name in _target_names(target)]


def _target_names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in _target_names(element)]
    if isinstance(target, ast.Starred):
        return _target_names(target.value)
    name = dotted(target)
    return [] if name is None else [name]


def assignments_to(scope: ast.AST, name: str) -> list[ast.stmt]:
    """The statements within `scope` that assign the dotted name, in order of the text."""
    found = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.stmt) and name in assigned_names(node)
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def reads_of(scope: ast.AST, name: str) -> list[ast.expr]:
    """The expressions within `scope` that read the dotted name or something under it, in order.

    Functions inside `scope` count unless they bind the name themselves.
    """
    found = [
        access.node
        for child in ast.iter_child_nodes(scope)
        for access in accesses(child)
        if access.kind == "read"
        and touches(name, access.name)
        and isinstance(access.node, ast.expr)
    ]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def accesses(node: ast.AST, hidden: frozenset[str] = frozenset()) -> Iterator[Access]:
    """Every read and binding in the code that concerns the scope around it, longest chains only."""
    for access in _accesses(node, hidden):
        if access.name.partition(".")[0] not in hidden:
            yield access


def _accesses(node: ast.AST, hidden: frozenset[str]) -> Iterator[Access]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield from _function(node, hidden)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        yield from _comprehension(node, hidden)
    elif isinstance(node, ast.ClassDef):
        yield Access(node.name, "bind", node)
        inside = hidden | {name for child in node.body for name in _bound_here(child)}
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            yield from accesses(part, hidden)
        for child in node.body:
            yield from accesses(child, inside)
    else:
        yield from _plain(node, hidden)


def _plain(node: ast.AST, hidden: frozenset[str]) -> Iterator[Access]:
    name = dotted(node)
    if name is not None and isinstance(node, ast.Name | ast.Attribute):
        yield Access(name, "read" if isinstance(node.ctx, ast.Load) else "bind", node)
        return
    for bound in _bound_by(node):
        yield Access(bound, "bind", node)
    if isinstance(node, ast.AugAssign) and (target := dotted(node.target)) is not None:
        yield Access(target, "read", node.target)
    for child in ast.iter_child_nodes(node):
        yield from accesses(child, hidden)


def _bound_by(node: ast.AST) -> list[str]:
    """What a node binds by itself, without its children."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    changed: ast.expr | None = None
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        changed = node.value
    elif isinstance(node, ast.Call) and is_in_place_method(node.func):
        assert isinstance(node.func, ast.Attribute)
        changed = node.func.value
    while isinstance(changed, ast.Subscript):
        changed = changed.value
    name = None if changed is None else dotted(changed)
    return [] if name is None else [name]


def is_in_place_method(function: ast.expr) -> bool:
    """True for `x.add_`: torch marks methods that change their tensor by a last underscore."""
    if not isinstance(function, ast.Attribute):
        return False
    return function.attr.endswith("_") and not function.attr.startswith("_")


def _function(node: Binder, hidden: frozenset[str]) -> Iterator[Access]:
    outside: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    if not isinstance(node, ast.Lambda):
        yield Access(node.name, "bind", node)
        outside += node.decorator_list
    for part in outside:
        yield from accesses(part, hidden)
    inside = hidden | local_names(node)
    for part in body:
        yield from accesses(part, inside)


def local_names(function: Binder) -> frozenset[str]:
    """The parameters and the names a function binds for itself."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    names = {one.arg for one in every}
    body = [] if isinstance(function, ast.Lambda) else function.body
    outer = {
        name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    return frozenset(names | {name for child in body for name in _bound_here(child)}) - outer


def _bound_here(node: ast.AST) -> set[str]:
    """The plain names that become local by this code. Writing into `x[i]` does not make `x` so."""
    return {
        access.name
        for access in accesses(node)
        if access.kind == "bind"
        and "." not in access.name
        and not isinstance(access.node, ast.Subscript | ast.Call)
    }


def _comprehension(node: Comprehension, hidden: frozenset[str]) -> Iterator[Access]:
    bound = {name for one in node.generators for name in _bound_here(one.target)}
    inside = hidden | bound
    yield from accesses(node.generators[0].iter, hidden)  # Python evaluates it outside
    for index, one in enumerate(node.generators):
        for part in one.ifs if index == 0 else [one.iter, *one.ifs]:
            yield from accesses(part, inside)
    values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for value in values:
        yield from accesses(value, inside)
