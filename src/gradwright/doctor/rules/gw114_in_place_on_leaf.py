"""A tensor that trains was changed in place while gradients were being recorded.

What it does
------------
Finds the in-place operation that torch refused, and whether it writes into a leaf that requires
grad, a view of one, or one of several views that share memory.

Why it hurts
------------
A leaf is where gradients arrive. If the graph could overwrite it, there would be no leaf left to
give the gradient to. Views from `unbind`, `chunk` or `split` cannot be followed one by one.

Example
-------
    for p in model.parameters():
        p -= lr * p.grad

Use instead
-----------
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad

When it is fine
---------------
Under `torch.no_grad()`: updates and initialisation are not part of the loss.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.leaf_writes import (
    RefusedWrite,
    find_refused_write,
    writes_a_result,
)
from gradwright.doctor.evidence.requires_grad import explain_flag
from gradwright.doctor.evidence.spans import span_of_frame, span_of_operation
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.repairs.leaf_writes import fixes_for_refused_write
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain an in-place operation or a `requires_grad` flag that torch refused."""
    refused = find_refused_write(crash)
    if refused is None:
        return _of_flag(crash)
    name = f"`{refused.target.name}`" if refused.target is not None else "a tensor"
    registered = _registered_name(crash, refused)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} is {_said(refused, registered)}, and is changed in place while recording",
        why=_why(refused, name),
        labels=_story(crash, refused, name).labels,
        fixes=fixes_for_refused_write(refused),
        avoid="`.data`: it hides the write from every check, also where the values are needed.",
        affected=(registered,) if registered else (),
    )


def _registered_name(crash: Crash, refused: RefusedWrite) -> str:
    tensor = refused.tensor
    if tensor is None:
        return ""
    names = crash.once(names_in_sight)
    return names.get(id(tensor)) or names.get(id(tensor._base), "")


def _said(refused: RefusedWrite, registered: str) -> str:
    if refused.kind == "leaf":
        return f"the parameter `{registered}`" if registered else "a leaf that requires grad"
    if refused.kind == "view of a leaf":
        of = f"the parameter `{registered}`" if registered else "a leaf that requires grad"
        return f"a view of {of}"
    if refused.kind == "one of several views":
        return "one of several views of a tensor"
    return "a view made without recording"


def _why(refused: RefusedWrite, name: str) -> str:
    if refused.kind == "one of several views":
        return (
            f"`unbind`, `split` and `chunk` return several views of one memory. torch cannot say "
            f"what a write into {name} means for the others."
        )
    if writes_a_result(refused):
        return (
            f"The value written into {name} has a graph of its own, and {name} is a leaf: it "
            "cannot be a result.\nA plain tensor can take the value with its graph."
        )
    return (
        "A leaf is where gradients arrive, so no recorded operation may overwrite it.\n"
        "This write is an update or an initialisation: it belongs under `torch.no_grad()`."
    )


def _story(crash: Crash, refused: RefusedWrite, name: str) -> Story:
    story = Story()
    operations = crash.journal.operations
    made = operations.of(refused.tensor) if refused.tensor is not None else None
    if made is not None and not made.source:
        born = span_of_operation(crash.journal, made)
        story.tell(born, f"{name} is made here")
    here = refused.target.span if refused.target is not None else span_of_frame(refused.frame)
    story.tell(here, f"{name} is changed in place here, with recording on", primary=True)
    return story


def _of_flag(crash: Crash) -> Diagnostic | None:
    flag = explain_flag(crash)
    if flag is None:
        return None
    story = Story()
    story.tell(flag.span, flag.label, primary=True)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=flag.summary,
        why=flag.why,
        labels=story.labels,
        fixes=flag.fixes,
    )


RULE = Rule("GW114", "in-place-on-leaf", "inplace-leaf", __doc__ or "", explain)
