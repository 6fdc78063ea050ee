"""Two losses hang on one graph, and each has its own backward.

What it does
------------
Finds the part of the graph that both backwards walk, and the two calls. Where an optimizer stepped
in between that does not hold the shared parameters, the first loss was probably not meant to reach
them, and the place to detach is named.

Why it hurts
------------
The first `backward()` frees the shared part, so the second finds it gone.

Example
-------
    for loss in losses:
        loss.backward()

Use instead
-----------
    sum(losses).backward()

When it is fine
---------------
`retain_graph=True` on all calls but the last is right when nothing changes the parameters in
between and you need the gradients one by one; it costs memory and walks the shared part each time.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call, span_of_call
from gradwright.doctor.evidence.second_backward import measured, second_backward
from gradwright.doctor.evidence.shared_graph import Shared, find_shared
from gradwright.doctor.evidence.spans import span_of_node, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import trained_by
from gradwright.doctor.repairs.shared import fixes_for_shared
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a second backward over a graph that two losses of one step share."""
    facts = crash.once(second_backward)
    shared = crash.once(find_shared)
    if facts is None or shared is None:
        return None
    reuse = facts[0]
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=_summary(shared),
        why=_why(shared),
        labels=_story(crash, shared).labels,
        fixes=fixes_for_shared(crash, shared),
        avoid=_avoid(shared),
        affected=trained_by(crash, reuse),
        measured=measured(crash, reuse),
    )


def _summary(shared: Shared) -> str:
    if shared.unwanted:
        return f"the first loss reaches through {shared.said} into what the second loss trains"
    if shared.by_grad:
        return f"`grad` used up the graph of {shared.said}, and the loss needs it"
    return f"two losses need the graph of {shared.said}, and each has its own backward"


def _story(crash: Crash, shared: Shared) -> Story:
    story = Story()
    if shared.built is not None:
        text = "the loss hangs" if shared.by_grad else "both losses hang"
        story.tell(span_of_site(shared.built), f"{text} on what is built here")
    if shared.first_use is not None and shared.first_node is not None:
        span = span_of_node(crash.journal, shared.first_node, shared.first_use)
        text = "the first loss takes it with its graph" if shared.unwanted else "one loss reads it"
        story.tell(span, text, primary=shared.unwanted)
    first = span_of_call(crash.journal, shared.reuse.freed_by)
    second = span_of_call(crash.journal, shared.reuse.call)
    story.tell(first, f"{said_call(shared.reuse.freed_by)} freed it", primary=not shared.unwanted)
    story.tell(second, f"{said_call(shared.reuse.call)} needed it again")
    return story


def _why(shared: Shared) -> str:
    if shared.unwanted:
        return (
            f"Behind {shared.said} lie parameters that another optimizer holds. The first loss "
            "probably needs the value only: it sends a gradient there all the same, and that uses "
            "up the graph."
        )
    if shared.by_grad:
        return (
            "`torch.autograd.grad` frees the graph it walks, and what it returns has no graph of "
            "its own. With `create_graph=True` it keeps the one and makes the other."
        )
    return (
        "`backward()` frees every graph it walks, and both losses walk the shared part. "
        "The gradient of a sum is the sum of the gradients: one call does both."
    )


def _avoid(shared: Shared) -> str:
    if shared.unwanted:
        return (
            "`retain_graph=True`: the second loss would walk a graph that the first loss has "
            "filled with gradients nobody wants, and an in-place error may follow the step."
        )
    if shared.by_grad:
        return (
            "`retain_graph=True`: the error goes away, but the gradient stays a constant, and the "
            "loss does not train through it."
        )
    return (
        f"`detach()` on {shared.said} for one of the losses: what lies behind would learn from the "
        "other loss only."
    )


RULE = Rule("GW103", "losses-share-graph", "second-backward", __doc__ or "", explain)
