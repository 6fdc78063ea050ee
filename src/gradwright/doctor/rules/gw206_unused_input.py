"""`grad` was asked for the gradient of tensors that the outputs do not depend on.

What it does
------------
Compares the inputs of `torch.autograd.grad` with the graph of the outputs. Names the parameters
that are missing there, and where a cut or a copy keeps them out, the line that made it.

Why it hurts
------------
An input outside the graph has no gradient. torch stops, because more often than not the wrong
tensors were asked for, or a cut on the way makes the program learn nothing.

Example
-------
    weights = {k: nn.Parameter(w - rate[k] * g) for (k, w), g in zip(start.items(), grads)}
    torch.autograd.grad(loss(weights), list(rate.values()))

Use instead
-----------
    weights = {k: w - rate[k] * g for (k, w), g in zip(start.items(), grads)}
    torch.autograd.grad(loss(weights), list(rate.values()))

When it is fine
---------------
A part of a model that this loss does not use: ask with `materialize_grads=True` for zeros, or
with `allow_unused=True` for `None`.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.naming import parameter_names, said_names
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.unused import Unused, find_unused
from gradwright.doctor.repairs.unused import fixes_for_unused
from gradwright.doctor.rules.base import Rule

_CUTS = {
    "parameter": "`nn.Parameter` makes a new leaf of this: what it was computed from is forgotten",
    "leaf": "a new leaf takes its value from this: what it was computed from is forgotten",
    "detach": "`.detach()` forgets what this was computed from",
    "data": "`.data` forgets what this was computed from",
    "recording-off": "recording is off here, so this forgets what it was computed from",
}


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a `grad` whose inputs are not in the graph."""
    if "not have been used in the graph" not in crash.message:
        return None
    unused = find_unused(crash)
    if unused is None or crash.raised_at is None:
        return None
    names = parameter_names(crash, unused.tensors)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{_said(unused, names)} not in the graph of {_outputs(crash)}",
        why=_why(unused, names),
        labels=_story(crash, unused, names).labels,
        fixes=fixes_for_unused(crash, unused),
        affected=tuple(names),
        measured={"unused": len(unused.tensors), "inputs": unused.total},
    )


def _said(unused: Unused, names: list[str]) -> str:
    count = len(unused.tensors)
    if count == 1:
        return f"`{names[0]}` is" if names else f"input {unused.positions[0] + 1} of `grad` is"
    who = f" ({said_names(names)})" if names else ""
    return f"{count} of {unused.total} inputs{who} are"


def _outputs(crash: Crash) -> str:
    names = parameter_names(crash, crash.roots()[:1])
    return f"`{names[0]}`" if names else "the outputs"


def _story(crash: Crash, unused: Unused, names: list[str]) -> Story:
    story = Story()
    if unused.broken is not None:
        said = _CUTS.get(unused.broken.kind, "this forgets what it was computed from")
        story.tell(unused.broken.line.span, said, primary=True)
    if unused.renewed is not None:
        name = f"`{names[0]}`" if names else "the input"
        said = f"{name} is made here, after or beside what the outputs were computed from"
        story.tell(unused.renewed.span, said, primary=True)
    proven = unused.broken is not None or unused.renewed is not None
    count = len(unused.tensors)
    asked = (
        f"asked for {unused.total} gradients; {count} of the inputs play no part"
        if unused.total > 1
        else "its gradient is asked for here"
    )
    story.tell(asked_at(crash), asked, primary=not proven)
    return story


def _why(unused: Unused, names: list[str]) -> str:
    if unused.broken is not None:
        return (
            "The outputs are computed from these tensors, but with a cut on the way, so autograd "
            "sees no connection. Zeros or `None` here would hide that nothing is learned."
        )
    if unused.renewed is not None:
        return (
            "An operation makes a new tensor. The outputs were computed from the old one, and "
            "the gradient is asked for the new one, which leads nowhere."
        )
    common = _common(names)
    who = f"`{common}` takes no part" if common else "These tensors take no part"
    return (
        f"{who} in what the outputs were computed from. torch asks whether that is meant before it "
        "invents a gradient."
    )


def _common(names: list[str]) -> str:
    """The module that all names share."""
    owners = {name.rpartition(".")[0] for name in names}
    return owners.pop() if len(owners) == 1 else ""


RULE = Rule("GW206", "unused-input", "unused-input", __doc__ or "", explain)
