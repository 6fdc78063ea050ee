"""Caches around a computation: `parametrize.cached()` blocks and caching decorators."""

import ast

from gradwright.diagnostic import Edit, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.syntax.contexts import swap_with_and_loop
from gradwright.doctor.syntax.decorators import context_name, remove_decorator
from gradwright.doctor.syntax.imports import qualified_name
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    Function,
    With,
    decorators_of,
    function_at,
    span_of,
    with_statements_around,
)

Edits = tuple[Edit, ...]
CACHES = ("functools.lru_cache", "functools.cache")


def cached_block(crash: Crash, reuse: Reuse) -> Span | None:
    """The header of a `parametrize.cached()` block inside which both backwards ran."""
    found = _cached_with(crash, reuse)
    if found is None:
        return None
    tree, block = found
    return span_of(tree, block.items[0].context_expr)


def _cached_with(crash: Crash, reuse: Reuse) -> tuple[SourceTree, With] | None:
    """A block that was entered before the old graph was built, and is still open."""
    built = crash.journal.stack_of_node(reuse.freed._sequence_nr())
    for frame in reversed(crash.user_frames):
        tree = tree_of(frame.file)
        line = next((site.line for site in built if site.code is frame.code), None)
        if tree is None or line is None:
            continue
        for block in with_statements_around(tree, frame.line):
            if block.lineno <= line and _is_cached(tree, block):
                return tree, block
    return None


def _is_cached(tree: SourceTree, block: With) -> bool:
    call = block.items[0].context_expr
    if not isinstance(call, ast.Call):
        return False
    name = qualified_name(tree, call.func) or dotted(call.func) or ""
    return name.endswith("parametrize.cached")


def cached_block_moved(crash: Crash, reuse: Reuse) -> Edits | None:
    """Open the block in every pass of the loop."""
    found = _cached_with(crash, reuse)
    return swap_with_and_loop(*found) if found is not None else None


def caching_decorator(origin: Origin) -> Span | None:
    """The decorator that keeps the result of the function which built the tensor."""
    found = _cached_function(origin)
    if found is None:
        return None
    tree, _, decorator = found
    return span_of(tree, decorator)


def _cached_function(origin: Origin) -> tuple[SourceTree, Function, ast.expr] | None:
    tree = tree_of(origin.built.file) if origin.built is not None else None
    function = function_at(tree, origin.built.line) if tree and origin.built else None
    if tree is None or function is None:
        return None
    for decorator in decorators_of(function):
        if context_name(tree, decorator) in CACHES:
            return tree, function, decorator
    return None


def uncached(origin: Origin) -> Edits | None:
    """Take the caching decorator away."""
    found = _cached_function(origin)
    if found is None:
        return None
    tree, function, decorator = found
    return remove_decorator(tree, function, context_name(tree, decorator) or "")
