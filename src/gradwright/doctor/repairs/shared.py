"""Fixes for two losses over one graph."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import site_of_call
from gradwright.doctor.evidence.origin import statement_of_site
from gradwright.doctor.evidence.shared_graph import Shared
from gradwright.doctor.journal import EngineCall
from gradwright.doctor.syntax.calls import set_keyword
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.expressions import append_method
from gradwright.doctor.syntax.losses import join_backwards, sum_losses
from gradwright.doctor.syntax.names import dotted, reads_of
from gradwright.doctor.syntax.split_losses import sum_losses_first
from gradwright.doctor.syntax.totals import add_up_in_loop
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import call_at, loops_around

Edits = tuple[Edit, ...]
_SHAPES = ("device", "dim", "dtype", "ndim", "new_ones", "new_zeros", "shape", "size")


def fixes_for_shared(crash: Crash, shared: Shared) -> tuple[Fix, ...]:
    """The first way that can be written, then keeping the graph."""
    ways = [(title, edits) for title, edits in _ways(crash, shared) if edits is not None]
    return tuple(Fix(title, edits) for title, edits in ways[:2])


def _ways(crash: Crash, shared: Shared) -> Iterator[tuple[str, Edits | None]]:
    if shared.unwanted:
        yield f"give the first loss the value of {shared.said} only", _detached_use(shared)
    if shared.by_grad:
        edits = _with(crash, shared.reuse.freed_by, "create_graph")
        yield "make the gradient itself differentiable", edits
        return
    yield "add the losses and call backward once", _summed(crash, shared)
    yield "keep the graph, if each gradient is needed by itself", _retained(crash, shared)


def _detached_use(shared: Shared) -> Edits | None:
    """`d(fake)` to `d(fake.detach())` on a line where only the first loss takes it.

    A helper that the second loss runs too hands it on: then the line to change is further out.
    """
    if not shared.name:
        return None
    for site in shared.first_stack:
        found = statement_of_site(site)
        if found is None:
            continue
        tree, statement = found
        reads = [_variable(read, shared.name) for read in reads_of(statement, shared.name)]
        taken = [read for read in reads if _is_handed_on(tree, read)]
        if taken:
            return combine(tree, *(append_method(tree, read, ".detach()") for read in taken))
    return None


def _variable(read: ast.expr, name: str) -> ast.expr:
    """`fake` in `fake.flatten`."""
    while isinstance(read, ast.Attribute) and dotted(read) != name:
        read = read.value
    return read


def _is_handed_on(tree: SourceTree, read: ast.expr) -> bool:
    """Whether the values of a variable are read, and not its shape alone."""
    around = tree.parents[read]
    if isinstance(around, ast.Attribute):
        return around.attr not in _SHAPES
    return not (isinstance(around, ast.Call) and dotted(around.func) == "len")


def _summed(crash: Crash, shared: Shared) -> Edits | None:
    first = site_of_call(crash.journal, shared.reuse.freed_by)
    second = site_of_call(crash.journal, shared.reuse.call)
    one, two = statement_of_site(first), statement_of_site(second)
    if one is None or two is None or one[0] is not two[0]:
        return None
    tree = one[0]
    if one[1] is two[1]:
        loops = loops_around(tree, one[1])
        if not loops:
            return None
        return (
            sum_losses(tree, loops[0])
            or sum_losses_first(tree, loops[0], one[1])
            or add_up_in_loop(tree, loops[0], one[1])
        )
    return join_backwards(tree, [one[1], two[1]])


def _retained(crash: Crash, shared: Shared) -> Edits | None:
    """Only where nothing steps in between: else the saved parameters would be stale.

    Two calls of `grad` accumulate nothing: the gradients are asked for before a backward that
    walks the same graph, so the second call keeps it as well.
    """
    first, second = shared.reuse.freed_by, shared.reuse.call
    if first.step != second.step:
        return None
    kept = _with(crash, first, "retain_graph")
    found = backward_call(crash, first)
    if first.accumulate or second.accumulate or first.place == second.place or found is None:
        return kept
    other = backward_call(crash, second)
    if other is None or other[0] is not found[0]:
        return kept
    return combine(found[0], kept, _with(crash, second, "retain_graph"))


def _with(crash: Crash, call: EngineCall, keyword: str) -> Edits | None:
    found = backward_call(crash, call)
    return set_keyword(*found, keyword, "True") if found is not None else None


def backward_call(crash: Crash, call: EngineCall) -> tuple[SourceTree, ast.Call] | None:
    """The source of a call into the engine."""
    site = site_of_call(crash.journal, call)
    found = statement_of_site(site)
    if found is None or site is None:
        return None
    node = call_at(found[0], site.line, {"backward", "grad", "manual_backward"})
    return (found[0], node) if node is not None else None
