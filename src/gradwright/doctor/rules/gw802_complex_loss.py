"""The loss is a complex number, and a gradient needs a real one to start from.

What it does
------------
Follows the loss back to the line that squared or reduced complex values without taking their
magnitude.

Why it hurts
------------
A complex number has no order: it cannot be made smaller. The square of a complex value is complex
again, unlike the square of its magnitude.

Example
-------
    gap = torch.fft.rfft(x) - torch.fft.rfft(y)
    loss = (gap ** 2).mean()

Use instead
-----------
    gap = torch.fft.rfft(x) - torch.fft.rfft(y)
    loss = (gap.abs() ** 2).mean()

When it is fine
---------------
Complex values inside a network are fine; only the loss has to be real.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#autograd-for-complex-numbers
"""

import torch

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.complexity import Square, find_square
from gradwright.doctor.evidence.lines import Line, line_of_tensor
from gradwright.doctor.evidence.naming import name_of
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.magnitude import fixes_for_complex
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a backward from a complex loss."""
    root = next((one for one in crash.roots() if one.is_complex()), None)
    if root is None or "only for real scalar outputs" not in crash.message:
        return None
    square, made = find_square(crash, root), line_of_tensor(crash.journal, root)
    name = name_of(crash, root) or "the loss"
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{name} is a complex number, and a gradient needs a real one",
        why=(
            "The square of a complex value is complex again. How large it is says its magnitude, "
            "`.abs()`, and that is real."
        ),
        labels=_story(crash, root, square, made).labels,
        fixes=fixes_for_complex(square, made),
        avoid="`.real` of the loss: for a square it is the difference of two squares, and falls "
        "without limit.",
        measured={"dtype": str(root.dtype).removeprefix("torch.")},
    )


def _story(crash: Crash, root: torch.Tensor, square: Square | None, made: Line | None) -> Story:
    story = Story()
    kind = str(root.dtype).removeprefix("torch.")
    if square is not None and square.born is not None:
        story.tell(square.born.span, "the values become complex here")
    if square is not None:
        story.tell(square.line.span, f"squared, and still {kind}", primary=True)
    elif made is not None:
        story.tell(made.span, f"reduced, and still {kind}", primary=True)
    bare = square is None and made is None
    story.tell(asked_at(crash), "a gradient of a complex number", primary=bare)
    return story


RULE = Rule("GW802", "complex-loss", "dtype-or-complex", __doc__ or "", explain)
