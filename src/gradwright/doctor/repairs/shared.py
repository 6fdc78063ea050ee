"""Fixes for two losses over one graph."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import site_of_call
from gradwright.doctor.evidence.origin import statement_of_site
from gradwright.doctor.evidence.shared_graph import Shared
from gradwright.doctor.syntax.calls import set_keyword
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.expressions import append_method
from gradwright.doctor.syntax.losses import join_backwards, sum_losses
from gradwright.doctor.syntax.names import reads_of
from gradwright.doctor.syntax.split_losses import sum_losses_first
from gradwright.doctor.syntax.totals import add_up_in_loop
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import call_at, loops_around

Edits = tuple[Edit, ...]


def fixes_for_shared(crash: Crash, shared: Shared) -> tuple[Fix, ...]:
    """The first way that can be written, then keeping the graph."""
    ways = [(title, edits) for title, edits in _ways(crash, shared) if edits is not None]
    return tuple(Fix(title, edits) for title, edits in ways[:2])


def _ways(crash: Crash, shared: Shared) -> Iterator[tuple[str, Edits | None]]:
    if shared.unwanted:
        yield f"give the first loss the value of {shared.said} only", _detached_use(shared)
    if shared.by_grad:
        yield "make the gradient itself differentiable", _with(crash, shared, "create_graph")
        return
    yield "add the losses and call backward once", _summed(crash, shared)
    yield "keep the graph, if each gradient is needed by itself", _retained(crash, shared)


def _detached_use(shared: Shared) -> Edits | None:
    """`d(fake)` to `d(fake.detach())` on the line where the first loss takes it."""
    found = statement_of_site(shared.first_use)
    if found is None or not shared.name:
        return None
    tree, statement = found
    reads = reads_of(statement, shared.name)
    edits = [append_method(tree, read, ".detach()") for read in reads]
    return combine(tree, *edits) if edits else None


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
    """Only where nothing steps in between: else the saved parameters would be stale."""
    if shared.reuse.freed_by.step != shared.reuse.call.step:
        return None
    return _with(crash, shared, "retain_graph")


def _with(crash: Crash, shared: Shared, keyword: str) -> Edits | None:
    call = _backward_call(crash, shared)
    return set_keyword(*call, keyword, "True") if call is not None else None


def _backward_call(crash: Crash, shared: Shared) -> tuple[SourceTree, ast.Call] | None:
    site = site_of_call(crash.journal, shared.reuse.freed_by)
    found = statement_of_site(site)
    if found is None or site is None:
        return None
    call = call_at(found[0], site.line, {"backward", "grad", "manual_backward"})
    return (found[0], call) if call is not None else None
