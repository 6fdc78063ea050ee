"""Tensors on two devices meet in one operation.

What it does
------------
Finds the tensor that lies elsewhere than the weights, and the line that made it.

Why it hurts
------------
An operation runs on one device. `torch.zeros(...)` and its like make their tensor on the CPU
unless they are told otherwise, wherever the model is.

Example
-------
    def forward(self, x):
        return self.layer(x + torch.zeros(x.shape[1]))

Use instead
-----------
    def forward(self, x):
        return self.layer(x + torch.zeros(x.shape[1], device=x.device))

When it is fine
---------------
A tensor with one number may stay on the CPU: it is sent along.

References
----------
https://docs.pytorch.org/docs/stable/tensor_attributes.html
"""

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.mismatch import Mismatch, find_device_mismatch
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.conversion import fixes_for_device
from gradwright.doctor.rules.base import Rule


def explain(crash: Crash) -> Diagnostic | None:
    """Explain an operation on tensors of two devices."""
    if "device" not in crash.message or "xpected" not in crash.message:
        return None
    facts = find_device_mismatch(crash)
    if facts is None:
        return None
    who = f"`{facts.name}`" if facts.name else "a tensor"
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{who} is on {facts.found}, what it meets is on {facts.wanted}",
        why=(
            "An operation needs all its tensors on one device. A new tensor is made on the CPU "
            "unless it is told another, and `.to(device)` returns a copy: it moves nothing."
        ),
        labels=_story(crash, facts).labels,
        fixes=fixes_for_device(crash, facts),
        measured={"found": facts.found, "expected": facts.wanted},
    )


def _story(crash: Crash, facts: Mismatch) -> Story:
    story = Story()
    if facts.made is not None and facts.source is not None:
        said = "seen here first" if facts.source.source else "made here"
        story.tell(facts.made.span, f"{said}, on {facts.found}", primary=True)
    both = f"this meets {facts.found} and {facts.wanted}"
    story.tell(asked_at(crash), both, primary=facts.made is None)
    return story


RULE = Rule("GW803", "device-mismatch", "dtype-or-complex", __doc__ or "", explain)
