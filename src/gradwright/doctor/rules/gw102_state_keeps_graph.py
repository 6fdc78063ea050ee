"""A state goes from one step into the next with its graph attached.

What it does
------------
Finds the tensor that one step computed and the next step read: a recurrent state, a running
statistic, a memory, a running total. Names the line that stored it and the line that read it.
A `detach()` whose result was dropped is named too.

Why it hurts
------------
The graph of the earlier step hangs on the state, and the earlier `backward()` has freed it. With
`retain_graph=True` every step would walk all steps before it: slower each time, memory without
end, and usually an in-place error at the next optimizer step.

Example
-------
    for x, y in windows:
        out, state = lstm(x, state)
        loss_of(out, y).backward()

Use instead
-----------
    for x, y in windows:
        state = tuple(part.detach() for part in state)
        out, state = lstm(x, state)
        loss_of(out, y).backward()

When it is fine
---------------
Inside one step a state may carry its graph: that is backpropagation through time. Cut it where
one backward ends and the next begins.

References
----------
Williams and Peng, An efficient gradient-based algorithm for on-line training of recurrent network
trajectories, Neural Computation 1990 (truncated backpropagation through time).
https://docs.pytorch.org/tutorials/intermediate/char_rnn_classification_tutorial.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.above_loop import built_above_loop
from gradwright.doctor.evidence.handed_on import handed_on_unchanged
from gradwright.doctor.evidence.lost_detach import find_lost_detach
from gradwright.doctor.evidence.origin import Origin
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.second_backward import measured, second_backward, tell_calls
from gradwright.doctor.evidence.spans import span_of_node
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import trained_by
from gradwright.doctor.repairs.cached import cached_block
from gradwright.doctor.repairs.state import dropped_detach, fixes_for_state
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.where import span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a second backward through a state of an earlier step."""
    facts = crash.once(second_backward)
    if facts is None or not is_state(crash, *facts):
        return None
    reuse, origin = facts
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{origin.said} goes into the next step with its graph attached",
        why=_why(origin),
        labels=_story(crash, reuse, origin).labels,
        fixes=fixes_for_state(crash, reuse, origin),
        avoid=(
            "`retain_graph=True`: every step would walk all the steps before it, "
            "slower and larger each time."
        ),
        affected=trained_by(crash, reuse),
        measured=measured(crash, reuse),
    )


def is_state(crash: Crash, reuse: Reuse, origin: Origin) -> bool:
    """Whether the line that made the old tensor runs again in every step."""
    if not reuse.joints or cached_block(crash, reuse) is not None:
        return False
    if built_above_loop(crash, reuse):
        return False
    joint = reuse.joints[0]
    assert joint.consumer is not None
    journal = crash.journal
    made = journal.main.place_of(joint.carried._sequence_nr())
    read = journal.main.place_of(joint.consumer._sequence_nr())
    if made == read:
        return True
    visits = journal.main.visits(made)
    steps = {_period(crash, start) for start in visits}
    return len(steps) > 1


def _period(crash: Crash, number: int) -> int:
    """How many engine calls had been made when node `number` was."""
    calls = crash.journal.calls.remembered()
    return sum(call.node <= number for call in calls)


def _story(crash: Crash, reuse: Reuse, origin: Origin) -> Story:
    story = Story()
    joint = reuse.joints[0]
    helper = handed_on_unchanged(crash, reuse, origin)
    dropped, lost = dropped_detach(origin), crash.once(find_lost_detach)
    if origin.built is not None:
        span = span_of_node(crash.journal, joint.carried, origin.built)
        elsewhere = (helper, dropped, lost, origin.look)
        here = all(one is None for one in elsewhere)
        story.tell(span, f"{origin.said} is made here, with its graph", primary=here)
    if dropped is not None:
        tree, statement = dropped
        text = "returns a detached tensor, which nobody keeps"
        story.tell(span_of(tree, statement), text, primary=True)
    if lost is not None:
        text = "detaches the loop's own variable only: the state stays as it is"
        story.tell(lost.span, text, primary=dropped is None)
    if helper is not None:
        story.tell(helper.span, helper.text, primary=True)
    if origin.reused is not None and joint.consumer is not None:
        span = span_of_node(crash.journal, joint.consumer, origin.reused)
        text = "the next step reads it, and the old graph comes along"
        story.tell(span, text, primary=origin.look is not None)
    tell_calls(story, crash, reuse)
    return story


def _why(origin: Origin) -> str:
    holder = origin.holder
    named = holder is None or holder.path == origin.name
    kept = "" if named or holder is None else f" (`{holder.path}` keeps it)"
    said = origin.said[:1].upper() + origin.said[1:]
    return (
        f"{said} is a value and a history{kept}. The next step needs the value only, but "
        "the history comes along, and the backward of the earlier step has already used it up."
    )


RULE = Rule("GW102", "state-keeps-graph", "second-backward", __doc__ or "", explain)
