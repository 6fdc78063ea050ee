"""Calls of `checkpoint`, and random draws that it restores."""

from __future__ import annotations

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.imports import localise, qualified_name
from gradwright.doctor.syntax.precedence import Level, fitted, needed_level, outer_bounds
from gradwright.doctor.syntax.tree import SourceTree

OPTIONS = frozenset(
    {
        "use_reentrant",
        "preserve_rng_state",
        "context_fn",
        "determinism_check",
        "debug",
        "early_stop",
    }
)
_UNIFORM = frozenset(
    {"random.random", "numpy.random.rand", "numpy.random.random", "numpy.random.random_sample"}
)


@rewrite
def call_directly(tree: SourceTree, call: ast.Call) -> list[Change]:
    """`checkpoint(block, x, use_reentrant=False)` to `block(x)`."""
    if not call.args or any(isinstance(one, ast.Starred) for one in call.args[:1]):
        raise Unsafe
    keywords = [one for one in call.keywords if one.arg is None or one.arg not in OPTIONS]
    start, end = outer_bounds(tree, call.args[0])
    function = fitted(tree.text[start:end], Level.PRIMARY)
    given: list[ast.expr | ast.keyword] = [*call.args[1:], *keywords]
    rest = [tree.source(one) for one in given]
    return [Change(tree.start(call), tree.end(call), f"{function}({', '.join(rest)})")]


@rewrite
def draw_with_torch(tree: SourceTree, call: ast.Call) -> list[Change]:
    """`random.random()` to `torch.rand(()).item()`, from the generator that checkpoint restores."""
    if qualified_name(tree, call.func) not in _UNIFORM or call.args or call.keywords:
        raise Unsafe
    text, changes = localise(tree, "torch.rand(()).item()")
    new = fitted(text, needed_level(tree, call))
    return [*changes, Change(tree.start(call), tree.end(call), new)]
