"""Fixes for a state that goes into the next step with its graph."""

import ast
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import site_of_call
from gradwright.doctor.evidence.handed_on import handed_on_unchanged
from gradwright.doctor.evidence.lost_detach import find_lost_detach
from gradwright.doctor.evidence.origin import Origin, statement_of_site
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.after_step import detached_after_step, reset_owners
from gradwright.doctor.repairs.after_yield import detached_after_yield, made_in_generator
from gradwright.doctor.repairs.reading import read_detached
from gradwright.doctor.repairs.state_values import state_value
from gradwright.doctor.repairs.storing import added_detached, ran_in, stored_detached
from gradwright.doctor.syntax.expressions import append_method
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.statements import replace_statement
from gradwright.doctor.syntax.stored_back import store_back
from gradwright.doctor.syntax.totals import backward_of_addend
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import function_at

Edits = tuple[Edit, ...]


def fixes_for_state(crash: Crash, reuse: Reuse, origin: Origin) -> tuple[Fix, ...]:
    """The first fix that can be written."""
    if reuse.joints[0].carried._sequence_nr() >= reuse.freed_by.node:
        return ()  # no backward has walked it yet: its gradient is wanted
    for title, edits in _detaching(crash, reuse, origin):
        if edits is not None:
            return (Fix(title, edits),)
    return ()


def _detaching(crash: Crash, reuse: Reuse, origin: Origin) -> Iterator[tuple[str, Edits | None]]:
    yield "store the detached parts back", _stored_back(crash)
    yield f"put only the value into `{origin.name}`", added_detached(crash, reuse, origin)
    yield f"keep the result of `{origin.name}.detach()`", _dropped_detach(crash, reuse, origin)
    yield "let the helper return the value only", _helper_detached(crash, reuse, origin)
    if made_in_generator(origin):
        yield f"detach {origin.said} after each `yield`", detached_after_yield(crash, reuse, origin)
        return
    if not ran_in(crash.journal, reuse):
        # a side product, such as running statistics: nothing in its own step needs its gradient
        yield f"store {origin.said} without its graph", stored_detached(crash, reuse, origin)
    if _updates_per_step(crash, reuse, origin) > 1:
        yield f"forget {origin.said} after each step", reset_owners(crash, origin)
        yield f"detach {origin.said} after each step", detached_after_step(crash, origin)
    yield "call backward on the new loss only", _addend_only(reuse, crash, origin)
    yield (
        f"start each step from the value of {origin.said} only",
        read_detached(crash, reuse, origin),
    )


def _stored_back(crash: Crash) -> Edits | None:
    lost = crash.once(find_lost_detach)
    return store_back(lost.tree, lost.loop, lost.assignment) if lost is not None else None


def dropped_detach(origin: Origin) -> tuple[SourceTree, ast.Expr] | None:
    """A statement `state.detach()` between birth and reuse: it changes nothing."""
    found = statement_of_site(origin.built)
    if found is None or origin.built is None or not origin.name:
        return None
    tree, statement = found
    scope = function_at(tree, origin.built.line) or tree.root
    for node in ast.walk(scope):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        if not isinstance(function, ast.Attribute) or function.attr != "detach":
            continue
        if (dotted(function.value) or "") in (origin.name, *assigned_names(statement)):
            return tree, node
    return None


def _dropped_detach(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    found = dropped_detach(origin)
    if found is None:
        return None
    tree, statement = found
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    name = dotted(statement.value.func.value)
    return replace_statement(tree, statement, f"{name} = {tree.source(statement.value)}")


def _helper_detached(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """`return state` to `return state.detach()`, in a helper that takes one tensor at a time."""
    helper = handed_on_unchanged(crash, reuse, origin)
    if helper is None:
        return None
    inside = (node for node in ast.walk(helper.definition) if isinstance(node, ast.Call))
    recurses = any(dotted(node.func) == helper.definition.name for node in inside)
    if not recurses and not is_a(state_value(crash, origin, origin.name), torch.Tensor):
        return None
    return append_method(helper.tree, helper.returned, ".detach()")


def _updates_per_step(crash: Crash, reuse: Reuse, origin: Origin) -> int:
    """How often the line that makes the state ran between the two backwards."""
    timeline = crash.journal.main
    place = timeline.place_of(reuse.joints[0].carried._sequence_nr())
    visits = timeline.visits(place, since=reuse.freed_by.node)
    return len([start for start in visits if start < reuse.call.node])


def _addend_only(reuse: Reuse, crash: Crash, origin: Origin) -> Edits | None:
    """A running total that is itself the loss."""
    addition = statement_of_site(origin.reused)
    backward = statement_of_site(site_of_call(crash.journal, reuse.call))
    if addition is None or backward is None or addition[0] is not backward[0]:
        return None
    return backward_of_addend(addition[0], addition[1], backward[1])
