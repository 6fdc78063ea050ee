"""Gradients were asked for a tensor of integers.

What it does
------------
Finds the tensor that torch refused, and follows its history back to the line that made integers:
a list of whole numbers, `arange`, `.long()`, a comparison.

Why it hurts
------------
A gradient says what ever smaller changes of a number do. Integers and truth values have no smaller
changes, so torch keeps gradients for floating point and complex numbers.

Example
-------
    position = torch.tensor([1, 2])
    position.requires_grad_()

Use instead
-----------
    position = torch.tensor([1.0, 2.0])
    position.requires_grad_()

When it is fine
---------------
Integers as labels, indices and counters: leave their `requires_grad` alone.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad_.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.integers import AskedIntegers, find_integers
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.integers import fixes_for_integers
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a refused `requires_grad` of an integer tensor."""
    asked = find_integers(crash)
    if asked is None:
        return None
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"gradients are asked for {_said(asked)}",
        why="A gradient says what ever smaller changes of a number do. Integers have none, so only "
        "floating point\nand complex tensors can require grad.",
        labels=_story(asked).labels,
        fixes=fixes_for_integers(crash, asked),
    )


def _said(asked: AskedIntegers) -> str:
    kind = f"`{asked.name}`, which holds" if asked.name else "a tensor of"
    return f"{kind} {_numbers(asked)}"


def _numbers(asked: AskedIntegers) -> str:
    if asked.tensor is None:
        return "integers"
    dtype = str(asked.tensor.dtype).removeprefix("torch.")
    return "truth values" if dtype == "bool" else f"integers ({dtype})"


def _story(asked: AskedIntegers) -> Story:
    story = Story()
    if asked.made is not None:
        said = f"{_numbers(asked)} are made here" + ", and needed as such" * asked.needed
        story.tell(asked.made.span, said, primary=not asked.needed)
    name = f" of `{asked.name}`" if asked.name else ""
    here = asked.made is None or asked.needed
    story.tell(asked.line.span, f"gradients{name} are asked for here", primary=here)
    return story


RULE = Rule("GW804", "integers-require-grad", "dtype-or-complex", __doc__ or "", explain)
