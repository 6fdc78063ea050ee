"""A saved tensor was changed between two backwards over one retained graph.

What it does
------------
Finds the tensor that the first backward over a retained graph could use and the second could not,
and the line that changed it in between: the `backward` of a custom Function itself, or a step of
an optimizer between the backwards of two losses.

Why it hurts
------------
A retained graph can only run twice if its saved tensors stay as they are. A backward that scales
its saved tensor in place gives a right gradient once; a second run would scale it twice, and torch
refuses.

Example
-------
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        saved.mul_(grad)
        return saved

Use instead
-----------
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        return saved * grad

When it is fine
---------------
A tensor that backward has just computed itself may be changed in place.

References
----------
https://docs.pytorch.org/docs/stable/notes/extending.html
https://github.com/k2-fsa/k2/pull/1106
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call, span_of_call
from gradwright.doctor.evidence.custom_function import writes_in_backward
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.evidence.stepped_between import is_stepped_between_tasks
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.targets import Target, target_of_write
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.evidence.writes import (
    SavedChange,
    find_saved_change,
    name_of_memory,
    said_node,
)
from gradwright.doctor.repairs.stale import fixes_for_step_between
from gradwright.doctor.repairs.writes import fixes_for_target, fixes_for_write
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a change between two runs over the same graph."""
    facts = crash.once(find_saved_change)
    if facts is None or facts.earlier is None:
        return None
    stepped = is_stepped_between_tasks(crash, facts)
    if not stepped and not facts.after_earlier_run:
        return None
    target = _target(crash, facts) if not stepped else None
    name = _name(crash, facts, target)
    fixes = fixes_for_step_between(crash, facts) if stepped else fixes_for_write(crash, facts)
    if not fixes and target is not None:
        fixes = fixes_for_target(target)
    first, second = said_call(facts.earlier), said_call(facts.call)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} was changed in place between two backwards over one retained graph",
        why=(
            f"{said_node(facts.modified.node)} had saved it. {first.capitalize()} could still use "
            f"it, {second} found other values.\nA retained graph can only run again if what it "
            "saved is left as it is."
        ),
        labels=_story(crash, facts, target, name).labels,
        fixes=fixes,
        avoid="`.data` to silence the check: the second gradient would be silently wrong.",
        measured={"first_call": facts.earlier.index + 1, "failing_call": facts.call.index + 1},
    )


def _name(crash: Crash, facts: SavedChange, target: Target | None) -> str:
    registered = name_of_memory(crash.once(names_in_sight), crash, facts.modified)
    if registered:
        return f"`{registered}`"
    return f"`{target.name}`" if target is not None else "a saved tensor"


def _target(crash: Crash, facts: SavedChange) -> Target | None:
    write = facts.change.write if facts.change is not None else None
    if write is not None:
        return target_of_write(crash.journal, write)
    return next(writes_in_backward(facts.modified.node), None)


def _story(crash: Crash, facts: SavedChange, target: Target | None, name: str) -> Story:
    story = Story()
    stack = crash.journal.stack_of_node(facts.modified.number)
    node = said_node(facts.modified.node)
    built = span_of_site(stack[0]) if stack else None
    change = facts.change
    places = crash.journal.places.stack(change.place) if change is not None else ()
    changed = target.span if target is not None else None
    if changed is None and places:
        changed = span_of_site(places[0])
    story.tell(built, f"{node} saved a tensor here for backward", primary=changed is None)
    if facts.earlier is not None:
        first = span_of_call(crash.journal, facts.earlier)
        story.tell(first, f"{said_call(facts.earlier)} ran over the graph and kept it")
    if changed is not None:
        story.tell(changed, f"{name} is changed in place here", primary=True)
    second = span_of_call(crash.journal, facts.call)
    story.tell(second, f"{said_call(facts.call)} needed it as it was")
    return story


RULE = Rule("GW113", "backward-changes-saved", "mutated-after-retain", __doc__ or "", explain)
