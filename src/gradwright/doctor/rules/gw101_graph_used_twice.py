"""A tensor was built once, above the loop or in a cache, and every backward walks its graph.

What it does
------------
Finds the tensor that a second `backward()` needed although the first one had freed its graph,
names the line that built it, the line that read it again, and who keeps it: a variable, an
attribute, a cache.

Why it hurts
------------
`backward()` frees every graph it walks. What is built once has one graph, so the second call
fails. With `retain_graph=True` the error goes away and the mistake stays: the tensor keeps the
values from before the first optimizer step.

Example
-------
    features = embed(ids)
    for batch in batches:
        loss = model(features[batch]).sum()
        loss.backward()

Use instead
-----------
    for batch in batches:
        features = embed(ids)
        loss = model(features[batch]).sum()
        loss.backward()

When it is fine
---------------
If the tensor is not meant to train, build it under `torch.no_grad()` or `.detach()` it: then it
has no graph, and it may be used for ever.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call
from gradwright.doctor.evidence.origin import Origin
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.second_backward import measured, second_backward, tell_calls
from gradwright.doctor.evidence.spans import span_of_node, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import trained_by
from gradwright.doctor.repairs.built_once import fixes_for_built_once
from gradwright.doctor.repairs.cached import cached_block, caching_decorator
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a second backward through something that was built once."""
    facts = crash.once(second_backward)
    if facts is None:
        return None
    reuse, origin = facts
    names = trained_by(crash, reuse)
    fixes = fixes_for_built_once(crash, reuse, origin)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{origin.said} was built once, and a second backward needs it",
        why=_why(reuse, origin),
        labels=_story(crash, reuse, origin).labels,
        fixes=fixes,
        avoid=_avoid(fixes, origin),
        affected=names,
        measured=measured(crash, reuse),
    )


def _story(crash: Crash, reuse: Reuse, origin: Origin) -> Story:
    story = Story()
    block = cached_block(crash, reuse)
    if block is not None:
        story.tell(block, "everything parametrized is computed once inside", primary=True)
    elif origin.built is not None:
        cache = caching_decorator(origin)
        story.tell(cache, "keeps the first result for ever", primary=True)
        span = span_of_site(origin.built)
        story.tell(span, "built here, once", primary=cache is None)
    if origin.reused is not None and reuse.joints and reuse.joints[0].consumer is not None:
        used = span_of_node(crash.journal, reuse.joints[0].consumer, origin.reused)
        story.tell(used, "every pass hangs a new graph on it")
    tell_calls(story, crash, reuse)
    return story


def _why(reuse: Reuse, origin: Origin) -> str:
    where = f"line {origin.built.line}" if origin.built is not None else "the line that built it"
    first = said_call(reuse.freed_by)
    if not reuse.joints:
        return (
            f"`backward()` frees every graph it walks. {where.capitalize()} did not run again "
            f"after {first}, so there was nothing left to walk."
        )
    kept = ""
    if origin.holder is not None and origin.holder.path != origin.name:
        kept = f" `{origin.holder.path}` keeps it."
    return (
        f"`backward()` frees every graph it walks. What is computed from {origin.said} gets a new "
        f"graph each time, but {where} ran once, before {first}: its graph is gone.{kept}"
    )


def _avoid(fixes: tuple[Fix, ...], origin: Origin) -> str:
    written = "".join(edit.replacement for fix in fixes[:1] for edit in fix.edits)
    if "retain_graph=True" in written:
        return ""
    return (
        "`retain_graph=True`: the error goes away, but "
        f"{origin.said} keeps its values however the parameters change."
    )


RULE = Rule("GW101", "graph-used-twice", "second-backward", __doc__ or "", explain)
