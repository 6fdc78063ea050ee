"""The loss of this step was made from no trainable tensor at all.

What it does
------------
Finds a loss that is a constant, such as `torch.zeros(())` for an empty batch, and says what was
different in the steps that went well.

Why it hurts
------------
A constant has no graph. The branch that makes it runs rarely, so training dies late, on the first
batch without a pair, a box or a token.

Example
-------
    if not active.any():
        return torch.zeros(())

Use instead
-----------
    if not active.any():
        return features.sum() * 0.0

When it is fine
---------------
Where the loss is added to others that have a graph: then a constant does no harm.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from gradwright.diagnostic import Diagnostic, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at, said_loss
from gradwright.doctor.evidence.constants import constant_site, earlier_loss
from gradwright.doctor.evidence.frozen import frozen_feeds
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.spans import span_of_operation, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.repairs.constants import fixes_for_constant
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a backward from a constant."""
    severance = crash.once(find_severance)
    if severance is None or severance.cut is not None or severance.passage is not None:
        return None
    if crash.once(frozen_feeds) or (crash.call is not None and not crash.call.recording):
        return None
    operation, site = constant_site(crash, severance)
    if site is None:
        return None
    before = earlier_loss(crash)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{said_loss(crash)} is a constant{_this_time(crash)}: no parameter feeds it",
        why=_why(site, before),
        labels=_story(crash, severance, operation, site, before).labels,
        fixes=fixes_for_constant(crash, operation, site),
        avoid="`requires_grad_(True)` on the constant where every batch gives one: nothing trains.",
        measured=_measured(crash),
    )


def _this_time(crash: Crash) -> str:
    call = crash.call
    return f" in step {call.step}" if call is not None and call.index else ""


def _why(site: Site, before: Site | None) -> str:
    if before is not None and (before.file, before.line) != (site.file, site.line):
        return (
            f"Before, the loss came from line {before.line} and had a graph. "
            f"This time it came from line {site.line}, which reads nothing that trains."
        )
    return "Backward needs a tensor that was computed from a trainable one. This one was not."


def _story(
    crash: Crash,
    severance: Severance,
    operation: Operation | None,
    site: Site,
    before: Site | None,
) -> Story:
    story = Story()
    if before is not None and (before.file, before.line) != (site.file, site.line):
        story.tell(span_of_site(before), "the loss of the step before came from here")
    span: Span | None = span_of_site(site)
    if operation is not None:
        span = span_of_operation(crash.journal, operation) or span
    story.tell(span, "this time it is a constant made here", primary=True)
    story.tell(asked_at(crash), f"backward starts from {said_loss(crash)}, which has no graph")
    return story


def _measured(crash: Crash) -> dict[str, str | int | float | bool]:
    call = crash.call
    return {
        "call": call.index + 1 if call is not None else 0,
        "step": call.step if call is not None else 0,
    }


RULE = Rule("GW205", "constant-loss", "no-grad", __doc__ or "", explain)
