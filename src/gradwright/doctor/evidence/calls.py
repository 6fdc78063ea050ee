"""How to speak of engine calls and steps."""

import ast
from bisect import bisect_right

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.journal import EngineCall, Journal, Site
from gradwright.doctor.syntax.tree import tree_of
from gradwright.doctor.syntax.where import call_at, span_of

_BACKWARD = {"backward", "manual_backward", "grad", "fit", "train", "step"}


def site_of_call(journal: Journal, call: EngineCall) -> Site | None:
    """The user's line that asked for the backward."""
    stack = journal.places.stack(call.place)
    return stack[0] if stack else None


def span_of_call(journal: Journal, call: EngineCall) -> Span | None:
    """The call expression on that line."""
    site = site_of_call(journal, call)
    if site is None:
        return None
    tree = tree_of(site.file)
    found: ast.Call | None = call_at(tree, site.line, _BACKWARD) if tree is not None else None
    if tree is None or found is None:
        return span_of_site(site)
    return span_of(tree, found)


def said_call(call: EngineCall) -> str:
    """`backward call 2`, counted from 1 as people do."""
    return f"{'backward' if call.accumulate else 'grad'} call {call.index + 1}"


def step_of(journal: Journal, number: int) -> int:
    """In which optimizer step a node was made: how many steps had finished before."""
    steps = journal.optimizers.remembered()
    return bisect_right([step.node for step in steps], number)


def calls_before(crash: Crash, number: int) -> int:
    """How many engine calls had finished when node `number` was made."""
    calls = crash.journal.calls.remembered()
    return bisect_right([call.node for call in calls], number)
