"""`backward()` was called on a tensor with several elements: the loss was never reduced.

What it does
------------
Finds the line that gave the loss its shape: a loss function that returns one value for each
sample, a `reduction="none"`, a stack of losses, outputs that are differentiated as they are.

Why it hurts
------------
A gradient is the slope of one number. For several numbers torch would have to know how much each
of them counts, and it does not guess.

Example
-------
    def distance(p, q):
        return (p - q).pow(2).sum(dim=1)

    distance(model(x), y).backward()

Use instead
-----------
    def distance(p, q):
        return (p - q).pow(2).sum(dim=1).mean()

    distance(model(x), y).backward()

When it is fine
---------------
With a weight for each element: `loss.backward(gradient=weights)`, or `grad_outputs=` in
`torch.autograd.grad`.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
"""

import torch

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.lines import Line, line_of_tensor
from gradwright.doctor.evidence.naming import name_of, said_shape
from gradwright.doctor.evidence.shape import asks_backward, line_of_shape
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.reduction import fixes_for_outputs, fixes_for_shape
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a backward from a tensor with several elements."""
    if "only for scalar outputs" not in crash.message:
        return None
    root = next((root for root in crash.roots() if root.numel() != 1), None)
    if root is None or crash.raised_at is None:
        return None
    backward = asks_backward(crash)
    name = name_of(crash, root) or ("the loss" if backward else "the outputs")
    cause = _cause(crash, root) if backward else None
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} has shape {said_shape(root)}, and a gradient starts from one number",
        why=_why(root, backward),
        labels=_story(crash, root, cause).labels,
        fixes=fixes_for_shape(cause) if backward else fixes_for_outputs(crash),
        avoid=_avoid(root) if backward else "",
        measured={"shape": said_shape(root), "elements": root.numel()},
    )


def _cause(crash: Crash, root: torch.Tensor) -> Line | None:
    return line_of_shape(crash, root) or line_of_tensor(crash.journal, root)


def _story(crash: Crash, root: torch.Tensor, cause: Line | None) -> Story:
    story = Story()
    shape = said_shape(root)
    if cause is not None:
        story.tell(cause.span, f"this has shape {shape} and is not reduced", primary=True)
        last = line_of_tensor(crash.journal, root)
        if last is not None and last.site.line != cause.site.line:
            story.tell(last.span, f"the shape is still {shape} here")
    made = line_of_tensor(crash.journal, root)
    if not asks_backward(crash) and made is not None:
        story.tell(made.span, f"the outputs: shape {shape}")
    story.tell(
        asked_at(crash), f"a gradient of {root.numel()} numbers at once", primary=cause is None
    )
    return story


def _why(root: torch.Tensor, backward: bool) -> str:
    count = root.numel()
    if not backward:
        return (
            "`grad` starts from one number. Where each output depends on its own row of the input, "
            f"the sum of the {count} outputs has the same gradients."
        )
    return (
        f"A gradient is the slope of one number, and these are {count}. torch does not guess "
        "whether you mean their mean, their sum or a weighting."
    )


def _avoid(root: torch.Tensor) -> str:
    return (
        "`backward(torch.ones_like(loss))`: it runs, but it takes the sum, so the step is "
        f"{root.numel()} times that of the mean and grows with the batch."
    )


RULE = Rule("GW208", "non-scalar-loss", "non-scalar", __doc__ or "", explain)
