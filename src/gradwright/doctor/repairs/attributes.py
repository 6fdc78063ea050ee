"""Fixes for a tensor kept in an attribute: a cache of its own, or a value made in `__init__`."""

import ast
import functools
import sys
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, statement_of_site
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.caches import guard_cache_test, reset_methods
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.decorators import replace_decorator
from gradwright.doctor.syntax.delay import delay_method
from gradwright.doctor.syntax.names import assignments_to, dotted, reads_in
from gradwright.doctor.syntax.properties import make_property
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import class_at

Edits = tuple[Edit, ...]


def fixes_for_attribute(crash: Crash, origin: Origin) -> Iterator[tuple[str, Edits | None]]:
    """Ways to compute the attribute anew, each with its title."""
    assert origin.holder is not None
    attribute, where = origin.holder.attribute, _class_of(origin)
    if where is None:
        return
    tree, class_node = where
    yield (
        f"use the stored `{attribute}` only if it carries no graph",
        guard_cache_test(tree, class_node, attribute),
    )
    yield (
        f"make `{attribute}` a property: computed at each use",
        _property(tree, class_node, attribute, origin),
    )
    yield (
        f"compute `{attribute}` where it is used",
        _delayed(tree, class_node, attribute, origin),
    )
    yield f"reset `{attribute}` after each step", reset_after_step(crash, origin, class_node)


def _class_of(origin: Origin) -> tuple[SourceTree, ast.ClassDef] | None:
    """The class that keeps the tensor, parsed."""
    assert origin.holder is not None
    if origin.built is not None:
        tree = tree_of(origin.built.file)
        found = class_at(tree, origin.built.line) if tree is not None else None
        if tree is not None and found is not None:
            return tree, found
    kind = type(origin.holder.owner)
    module = sys.modules.get(kind.__module__)
    tree = tree_of(getattr(module, "__file__", None) or "")
    if tree is None:
        return None
    classes = (node for node in ast.walk(tree.root) if isinstance(node, ast.ClassDef))
    named = next((node for node in classes if node.name == kind.__name__), None)
    return (tree, named) if named is not None else None


def _property(
    tree: SourceTree, class_node: ast.ClassDef, attribute: str, origin: Origin
) -> Edits | None:
    assert origin.holder is not None
    kept = getattr(type(origin.holder.owner), attribute, None)
    if not is_a(kept, functools.cached_property):
        return None
    for method in class_node.body:
        if isinstance(method, ast.FunctionDef) and method.name == attribute:
            return replace_decorator(tree, method, "functools.cached_property", "property")
    return None


def _delayed(
    tree: SourceTree, class_node: ast.ClassDef, attribute: str, origin: Origin
) -> Edits | None:
    found = statement_of_site(origin.built)
    return delay_method(tree, class_node, attribute, found[1]) if found is not None else None


def reset_after_step(crash: Crash, origin: Origin, class_node: ast.ClassDef) -> Edits | None:
    """Call the method that the class has for forgetting, right after the optimizer's step."""
    assert origin.holder is not None
    methods = reset_methods(class_node, origin.holder.attribute)
    owner_path = origin.holder.attribute_path.rpartition(".")[0]
    if not methods or not owner_path:
        return None
    place = step_statement(crash, origin.holder.frame.site)
    return insert_after(*place, [f"{owner_path}.{methods[0]}()"]) if place is not None else None


def step_statement(crash: Crash, function: Site) -> tuple[SourceTree, ast.stmt] | None:
    """The statement of the last optimizer step that this function asked for."""
    for step in reversed(crash.journal.optimizers.remembered()):
        for site in crash.journal.places.stack(step.place):
            if site.code is function.code:
                return statement_of_site(site)
    return None


def as_property(origin: Origin) -> Edits | None:
    """Compute what `__init__` computed once at each use."""
    found = statement_of_site(origin.built)
    if found is None or origin.built is None:
        return None
    tree, statement = found
    class_node = class_at(tree, origin.built.line)
    if class_node is None:
        return None
    every = _built_with(class_node, statement, origin)
    if any(delay_possible(one) for one in every):
        return None
    return combine(tree, *(make_property(tree, class_node, one) for one in every))


def _built_with(class_node: ast.ClassDef, statement: ast.stmt, origin: Origin) -> list[ast.stmt]:
    """The statement, and those that made attributes with a graph which its value reads."""
    kept = own_dict(origin.holder.owner) if origin.holder is not None else {}
    every = [statement]
    for one in every:
        for name in sorted(reads_in(one)):
            value = kept.get(name.removeprefix("self.").partition(".")[0])
            if not name.startswith("self.") or not is_a(value, torch.Tensor):
                continue
            if value.grad_fn is not None:
                made = assignments_to(class_node, ".".join(name.split(".")[:2]))
                every += [other for other in made if other not in every]
    return every


def delay_possible(statement: ast.stmt) -> bool:
    """`nn.Parameter(x).exp()`: the parameter must stay where it is, only the method can move."""
    return any(
        isinstance(node, ast.Call) and (dotted(node.func) or "").endswith("Parameter")
        for node in ast.walk(statement)
    )
