"""Tensors of two types meet in an operation that takes one.

What it does
------------
Finds the odd tensor of the operation that failed, or of the graph whose backward failed, and
follows it back to the line where its type entered: an array of NumPy, a `.double()`, a list.

Why it hurts
------------
NumPy computes in float64 and torch in float32. One array that comes in unconverted widens what it
touches, until something with weights refuses it, at times not before backward.

Example
-------
    reward = torch.from_numpy(np.array(rewards))
    loss = F.huber_loss(guess, reward)

Use instead
-----------
    reward = torch.from_numpy(np.array(rewards)).float()
    loss = F.huber_loss(guess, reward)

When it is fine
---------------
A whole program in float64, with `model.double()` and data alike.

References
----------
https://docs.pytorch.org/docs/stable/tensor_attributes.html
"""

import re

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.mismatch import Mismatch, find_dtype_mismatch
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.conversion import fixes_for_dtype
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax import span_of

_KIND = re.compile(r"dtype|scalar type|[Ii]nput type|datatype")


def explain(crash: Crash) -> Diagnostic | None:
    """Explain an operation on tensors of two types."""
    if _KIND.search(crash.message) is None or "grad can be" in crash.message:
        return None
    facts = find_dtype_mismatch(crash)
    if facts is None:
        return None
    found, wanted = _short(facts.found), _short(facts.wanted)
    who = f"`{facts.name}`" if facts.name else "a tensor"
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{who} is {found} where {wanted} is needed",
        why=_why(crash, found, wanted),
        labels=_story(crash, facts).labels,
        fixes=fixes_for_dtype(crash, facts),
        measured={"found": found, "expected": wanted},
    )


def _story(crash: Crash, facts: Mismatch) -> Story:
    story = Story()
    found, wanted = _short(facts.found), _short(facts.wanted)
    if facts.origin is not None:
        said = f"probably here: the tensor has the type of its array, {found}"
        story.tell(span_of(*facts.origin), said, primary=True)
    if facts.made is not None and facts.source is not None:
        said = "seen here first" if facts.source.source else "made here"
        story.tell(facts.made.span, f"{said}: {found}", primary=facts.origin is None)
    said = "backward meets" if crash.in_engine else "this meets"
    story.tell(
        asked_at(crash),
        f"{said} {found} and {wanted}",
        primary=facts.made is None and facts.origin is None,
    )
    return story


def _why(crash: Crash, found: str, wanted: str) -> str:
    if found == "float64":
        start = f"float64 is what NumPy and Python numbers make; the others here are {wanted}."
    else:
        start = f"The others here are {wanted}, and this operation does not convert."
    mixed = " The forward mixed the two and widened the result; backward does not."
    return start + mixed * crash.in_engine


def _short(kind: str) -> str:
    return kind.removeprefix("torch.")


RULE = Rule("GW801", "dtype-mismatch", "dtype-or-complex", __doc__ or "", explain)
