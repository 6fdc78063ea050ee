"""An optimizer changed a parameter that a loss, built before, still needs for its backward.

What it does
------------
Finds the parameter that a loss had saved, the line that built the loss, and the optimizer step or
hand-written update that changed the parameter before the loss went backward.

Why it hurts
------------
The gradient of a layer is computed from its weights as they were in forward. A step overwrites
them in place, so torch refuses to use them. The same happens when `retain_graph=True` lets a
state's graph through into the next step: its weights have been stepped since.

Example
-------
    loss_g = critic(fake).mean()
    loss_d.backward(retain_graph=True)
    opt_d.step()
    loss_g.backward()

Use instead
-----------
    loss_d.backward(retain_graph=True)
    opt_d.step()
    loss_g = critic(fake).mean()
    loss_g.backward()

When it is fine
---------------
Two losses of one forward pass may have a backward each, if all steps come after the last one.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
https://github.com/pytorch/pytorch/issues/39141
"""

from gradwright.diagnostic import Diagnostic, Fix, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call, span_of_call
from gradwright.doctor.evidence.carried import carried_graph
from gradwright.doctor.evidence.origin import Origin, find_origin
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.spans import span_of_node, span_of_site
from gradwright.doctor.evidence.stale import StaleLoss, find_stale_loss
from gradwright.doctor.evidence.stepped_between import is_stepped_between_tasks
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.evidence.writes import (
    SavedChange,
    find_saved_change,
    is_parameter_memory,
    name_of_memory,
)
from gradwright.doctor.repairs.stale import fixes_for_stale_loss
from gradwright.doctor.repairs.state import fixes_for_state
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.where import span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a saved parameter that was stepped before the backward."""
    facts = crash.once(find_saved_change)
    if facts is None or facts.change is None or (facts.after_earlier_run and not facts.by_step):
        return None
    if not facts.by_step and not is_parameter_memory(crash, facts.modified):
        return None
    if is_stepped_between_tasks(crash, facts):
        return None
    reuse = carried_graph(crash, facts)
    return _of_old_state(crash, facts, reuse) if reuse else _of_stale_loss(crash, facts)


def _of_stale_loss(crash: Crash, facts: SavedChange) -> Diagnostic:
    stale = find_stale_loss(crash, facts)
    name = _name(crash, facts)
    loss = f"`{stale.name}`" if stale is not None and stale.name else "the loss"
    changer = _changer(crash, facts)
    why = (
        f"The gradient of {loss} needs {name} as it was in forward. {changer} overwrote it in "
        f"place.\nBuild {loss} after the change, or change nothing before its backward has run."
    )
    story = _story_of_stale_loss(crash, facts, stale, name)
    fixes = fixes_for_stale_loss(crash, facts, stale) if stale is not None else ()
    summary = f"{changer} changed {name} before the backward of {loss}, which was built earlier"
    return _diagnostic(crash, facts, summary, why, story, fixes)


def _story_of_stale_loss(
    crash: Crash, facts: SavedChange, stale: StaleLoss | None, name: str
) -> Story:
    story = Story()
    stack = crash.journal.stack_of_node(facts.modified.number)
    read = span_of_node(crash.journal, facts.modified.node, stack[0]) if stack else None
    moves = bool(facts.by_step and stale is not None and stale.parts)
    story.tell(read, f"{name} is read here and saved for backward")
    if moves and stale is not None:
        story.tell(span_of(stale.tree, stale.parts[-1]), "this loss is built on it", primary=True)
    story.tell(_span_of_change(crash, facts), f"{name} is changed in place here", primary=not moves)
    needed = span_of_call(crash.journal, facts.call)
    story.tell(needed, f"{said_call(facts.call)} needed {name} from before the change")
    return story


def _of_old_state(crash: Crash, facts: SavedChange, reuse: Reuse) -> Diagnostic:
    origin = find_origin(crash, reuse.joints[0].carried, reuse.joints[0].consumer)
    name = _name(crash, facts)
    kept = "`retain_graph=True` hid the reuse" if reuse.freed_by.retain_graph else "It was kept"
    why = (
        f"Its graph needs {name} as it was before the step.\n"
        f"{kept}: the graph of an earlier step should have been left behind, not carried on."
    )
    summary = f"{origin.said} brings the graph of an earlier step, whose {name} has changed since"
    story = _story_of_old_state(crash, facts, reuse, origin, name)
    return _diagnostic(crash, facts, summary, why, story, fixes_for_state(crash, reuse, origin))


def _story_of_old_state(
    crash: Crash, facts: SavedChange, reuse: Reuse, origin: Origin, name: str
) -> Story:
    story = Story()
    if origin.built is not None:
        span = span_of_site(origin.built)
        story.tell(span, f"{origin.said} is built here, with a graph", primary=True)
    retained = span_of_call(crash.journal, reuse.freed_by)
    if reuse.freed_by.retain_graph:
        story.tell(retained, f"{said_call(reuse.freed_by)} retained that graph")
    story.tell(_span_of_change(crash, facts), f"{name} is changed in place here")
    if origin.reused is not None:
        story.tell(span_of_site(origin.reused), "a new graph is hung on the old one")
    needed = span_of_call(crash.journal, facts.call)
    story.tell(needed, f"{said_call(facts.call)} needed {name} from before the change")
    return story


def _name(crash: Crash, facts: SavedChange) -> str:
    name = name_of_memory(crash.once(names_in_sight), crash, facts.modified)
    return f"`{name}`" if name else "a parameter"


def _changer(crash: Crash, facts: SavedChange) -> str:
    assert facts.change is not None
    stack = crash.journal.places.stack(facts.change.place)
    line = f"line {stack[0].line}" if stack else "a later line"
    return "`step()`" if facts.by_step else line.capitalize()


def _span_of_change(crash: Crash, facts: SavedChange) -> Span | None:
    assert facts.change is not None
    stack = crash.journal.places.stack(facts.change.place)
    return span_of_site(stack[0]) if stack else None


def _was_retained(facts: SavedChange) -> bool:
    return facts.carried and facts.earlier is not None and facts.earlier.retain_graph


def _diagnostic(
    crash: Crash,
    facts: SavedChange,
    summary: str,
    why: str,
    story: Story,
    fixes: tuple[Fix, ...],
) -> Diagnostic:
    name = name_of_memory(crash.once(names_in_sight), crash, facts.modified)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        # a graph kept over the step by `retain_graph=True` is another mistake than a late step
        category="mutated-after-retain" if _was_retained(facts) else RULE.category,
        severity="error",
        summary=summary,
        why=why,
        labels=story.labels,
        fixes=fixes,
        avoid="`retain_graph=True`: it keeps the graph, not the values that the step overwrote.",
        affected=(name,) if name else (),
        measured={
            "failing_call": facts.call.index + 1,
            "saved_version": facts.modified.expected,
            "found_version": facts.modified.found,
            "step": facts.call.step,
        },
    )


RULE = Rule("GW112", "stepped-before-backward", "inplace-modified", __doc__ or "", explain)
