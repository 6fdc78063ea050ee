"""A tensor that the program differentiates by, or trains, does not require grad itself.

What it does
------------
Looks at the inputs of `torch.autograd.grad`, at the tensors in the optimizer, and at tensors that
an update replaced by a new one, and finds those that do not require grad.

Why it hurts
------------
Autograd records what is computed from tensors that require grad. An input without the flag leaves
no trace, so there is nothing to differentiate by. `w = w - rate * w.grad` makes a new `w` without
the flag; only the first step works.

Example
-------
    with torch.no_grad():
        w = w - rate * w.grad

Use instead
-----------
    with torch.no_grad():
        w -= rate * w.grad
        w.grad = None

When it is fine
---------------
For data that nothing is differentiated by.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.flagless import Flagless, find_flagless
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.flagless import fixes_for_flagless
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a missing `requires_grad` on what the program differentiates by."""
    facts = crash.once(find_flagless)
    if facts is None:
        return None
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=_summary(facts),
        why=_why(facts),
        labels=_story(crash, facts).labels,
        fixes=fixes_for_flagless(facts),
        avoid=(
            "`requires_grad_(True)` on the result: what it was computed from is not recorded, so "
            f"`{facts.name}` still gets no gradient."
        ),
        affected=(facts.name,),
        measured={"rebound": facts.rebound},
    )


def _summary(facts: Flagless) -> str:
    if facts.rebound:
        return f"`{facts.name}` no longer requires grad: the update made a new tensor"
    return f"`{facts.name}` does not require grad, so nothing can be differentiated by it"


def _why(facts: Flagless) -> str:
    if facts.rebound:
        return (
            f"The update rebinds `{facts.name}` to a new tensor, made outside the graph and "
            "without the flag. The next loss is computed from it and has nothing to train."
        )
    return (
        "Autograd records operations on tensors that require grad. The flag must be set before "
        f"the first computation with `{facts.name}`."
    )


def _story(crash: Crash, facts: Flagless) -> Story:
    story = Story()
    text = "made here, without the flag"
    if facts.rebound:
        text = "a new tensor takes the name; it does not require grad"
    story.tell(facts.span, text, primary=True)
    story.tell(asked_at(crash), f"a gradient for `{facts.name}` is asked for here")
    return story


RULE = Rule("GW207", "input-without-grad", "no-grad", __doc__ or "", explain)
