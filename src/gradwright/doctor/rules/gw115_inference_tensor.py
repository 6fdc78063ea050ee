"""A tensor made under `torch.inference_mode()` entered a computation that records gradients.

What it does
------------
Finds the inference tensor on the line that failed, the line that made it, and the decorator or
`with` statement that had inference mode on there.

Why it hurts
------------
Inference mode saves time by leaving out the counters that autograd needs to watch a tensor. Such
a tensor can never be saved for backward, not even after inference mode has ended.

Example
-------
    with torch.inference_mode():
        scale = targets.std()
    loss = (model(x) * scale).sum()

Use instead
-----------
    with torch.no_grad():
        scale = targets.std()
    loss = (model(x) * scale).sum()

When it is fine
---------------
For evaluation and export: results that are printed, stored or compared, never trained on.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#inference-mode
"""

from gradwright.diagnostic import Diagnostic, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.inference import InferenceTensor, find_inference_tensor
from gradwright.doctor.evidence.spans import span_of_frame, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax.decorators import rename_context
from gradwright.doctor.syntax.where import span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain an inference tensor that met autograd."""
    found = crash.once(find_inference_tensor)
    if found is None:
        return None
    name = f"`{found.name}`" if found.name else "a tensor"
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} was made in inference mode and is used where gradients are recorded",
        why=(
            f"Inference mode leaves out the counters by which autograd watches a tensor, for good: "
            f"{name} can never be saved for backward.\n`torch.no_grad()` also records nothing, and "
            "its tensors can be used afterwards."
        ),
        labels=_story(crash, found, name).labels,
        fixes=_fixes(found),
        avoid="`.detach()`: a detached inference tensor is still an inference tensor.",
    )


def _story(crash: Crash, found: InferenceTensor, name: str) -> Story:
    story = Story()
    context = found.context
    if context is not None:
        on = span_of(context.tree, context.expression)
        story.tell(on, "inference mode is on from here", primary=True)
    if found.made is not None:
        story.tell(span_of_site(found.made), "its values are computed here")
    if crash.raised_at is not None:
        here = span_of_frame(crash.raised_at)
        story.tell(here, f"{name} is used here, with recording on")
    return story


def _fixes(found: InferenceTensor) -> tuple[Fix, ...]:
    context = found.context
    if context is None:
        return ()
    edits = rename_context(context.tree, context.owner, "torch.inference_mode", "torch.no_grad")
    return (Fix("record nothing there with `torch.no_grad()`", edits),) if edits else ()


RULE = Rule("GW115", "inference-tensor", "inference-tensor", __doc__ or "", explain)
