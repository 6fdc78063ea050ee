"""A tensor was changed in place after an operation had saved it for backward.

What it does
------------
Finds the graph node whose saved tensor has a newer version than when it was saved, the line that
made the node, and the line that wrote into the tensor since.

Why it hurts
------------
The derivative of many operations is computed from the values they read or returned: `tanh` from
its output, a product from its factors. If those values are overwritten, the gradient would be
wrong, so torch refuses.

Example
-------
    out = torch.tanh(layer(x))
    out += x
    out.sum().backward()

Use instead
-----------
    out = torch.tanh(layer(x))
    out = out + x
    out.sum().backward()

When it is fine
---------------
Writing in place is fine where no operation saved the values: after an addition, a mean, or a
linear layer whose output nothing else has read yet.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call, span_of_call
from gradwright.doctor.evidence.spans import span_of_node, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.targets import Target, target_of_write
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.evidence.writes import (
    SavedChange,
    find_saved_change,
    is_parameter_memory,
    name_of_memory,
    said_node,
    slot_of,
)
from gradwright.doctor.repairs.writes import fixes_for_write
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a saved tensor that the user's own line overwrote."""
    facts = crash.once(find_saved_change)
    if facts is None or facts.by_step or facts.after_earlier_run:
        return None
    if facts.change is not None and is_parameter_memory(crash, facts.modified):
        return None
    name = _name(crash, facts)
    registered = name_of_memory(crash.once(names_in_sight), crash, facts.modified)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} was changed in place after {_saver(facts)} had saved it for backward",
        why=_why(facts, name),
        labels=_story(crash, facts, name).labels,
        fixes=fixes_for_write(crash, facts),
        avoid="`.data` or `.detach()` to silence the check: the gradient would be silently wrong.",
        affected=(registered,) if registered else (),
        measured={
            "saved_version": facts.modified.expected,
            "found_version": facts.modified.found,
            "failing_call": facts.call.index + 1,
            "step": facts.call.step,
        },
    )


def _saver(facts: SavedChange) -> str:
    return said_node(facts.modified.node)


def _name(crash: Crash, facts: SavedChange) -> str:
    registered = name_of_memory(crash.once(names_in_sight), crash, facts.modified)
    target = _target(crash, facts)
    if registered:
        return f"`{registered}`"
    return f"`{target.name}`" if target is not None else "a tensor"


def _target(crash: Crash, facts: SavedChange) -> Target | None:
    write = facts.change.write if facts.change is not None else None
    return target_of_write(crash.journal, write) if write is not None else None


def _why(facts: SavedChange, name: str) -> str:
    slot = slot_of(facts.modified.node)
    kept = {"output": "its output", "input": "what it read"}.get(slot, "that tensor")
    return (
        f"The gradient of {_saver(facts)} is computed from {kept}, so torch kept the tensor "
        f"itself, not a copy.\nThe write put other values there, and the gradient would be wrong."
    )


def _story(crash: Crash, facts: SavedChange, name: str) -> Story:
    story = Story()
    node = facts.modified.node
    stack = crash.journal.stack_of_node(facts.modified.number)
    slot = {"output": "its output", "input": "its input"}.get(slot_of(node), "a tensor")
    saved = span_of_node(crash.journal, node, stack[0]) if stack else None
    change, target = facts.change, _target(crash, facts)
    story.tell(saved, f"{said_node(node)} saved {slot} here for backward", primary=change is None)
    if change is not None:
        places = crash.journal.places.stack(change.place)
        span = span_of_site(places[0]) if places else None
        span = target.span if target is not None else span
        story.tell(span, f"{name} is changed in place here", primary=True)
    needed = span_of_call(crash.journal, facts.call)
    story.tell(needed, f"{said_call(facts.call)} needed the values from before the change")
    return story


RULE = Rule("GW111", "changed-in-place", "inplace-modified", __doc__ or "", explain)
