"""A list of tensors is never cleared, so old graphs come back with the new ones.

What it does
------------
Finds a list, deque or dict that holds tensors of this step and of steps whose backward has already
run, and the line that puts all of them into the loss.

Why it hurts
------------
The tensors of earlier steps have lost their graphs, so the backward fails at the first of them.

Example
-------
    log_probs.append(dist.log_prob(action))     # for every action of every episode
    loss = -(torch.stack(log_probs) * returns).sum()
    loss.backward()

Use instead
-----------
    loss.backward()
    optimizer.step()
    log_probs.clear()

When it is fine
---------------
A list of plain numbers (`loss.item()`) or of detached tensors may grow.

References
----------
https://github.com/pytorch/examples/blob/main/reinforcement_learning/reinforce.py
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.collected import Collected, find_collected
from gradwright.doctor.evidence.second_backward import measured, second_backward, tell_calls
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import trained_by
from gradwright.doctor.repairs.collected import fixes_for_collected
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a second backward through a collection that keeps tensors of earlier steps."""
    facts = crash.once(second_backward)
    collected = crash.once(find_collected)
    if facts is None or collected is None:
        return None
    reuse = facts[0]
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=_summary(collected),
        why=_why(collected),
        labels=_story(crash, collected).labels,
        fixes=fixes_for_collected(crash, collected),
        avoid="`retain_graph=True`: old steps would be counted again in every later one.",
        affected=trained_by(crash, reuse),
        measured={**measured(crash, reuse), "old": collected.old, "total": collected.total},
    )


def _summary(collected: Collected) -> str:
    tensors = "1 tensor of an earlier step"
    if collected.old > 1:
        tensors = f"{collected.old} tensors of earlier steps"
    return f"`{collected.name}` still holds {tensors}"


def _why(collected: Collected) -> str:
    belong = "belongs" if collected.old == 1 else "belong"
    return (
        f"`{collected.name}` was not emptied after the last step: {collected.old} of its "
        f"{collected.total} tensors {belong} to a backward that has run, and that freed the graphs."
    )


def _story(crash: Crash, collected: Collected) -> Story:
    story = Story()
    if collected.added is not None:
        story.tell(span_of_site(collected.added), f"each step adds to `{collected.name}`")
    if collected.read is not None:
        story.tell(span_of_site(collected.read), "all of it goes into the loss", primary=True)
    tell_calls(story, crash, collected.reuse)
    return story


RULE = Rule("GW104", "list-keeps-graphs", "second-backward", __doc__ or "", explain)
