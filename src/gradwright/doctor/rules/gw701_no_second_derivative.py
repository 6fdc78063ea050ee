"""A gradient is differentiated again, through an operation that has only a first derivative.

What it does
------------
Finds the line of the forward that uses the operation (`cdist`, fused attention, a custom Function
marked `once_differentiable`), and the call with `create_graph=True` that differentiated it first.

Why it hurts
------------
A gradient penalty, second-order meta-learning and a physics loss all differentiate a gradient.
Each operation on the way then needs a derivative of its derivative, and fused kernels have none.

Example
-------
    distance = torch.cdist(x, centres)
    grad, = torch.autograd.grad(distance.sum(), x, create_graph=True)
    grad.pow(2).sum().backward()

Use instead
-----------
    distance = torch.cdist(x, centres, compute_mode="use_mm_for_euclid_dist")
    grad, = torch.autograd.grad(distance.sum(), x, create_graph=True)
    grad.pow(2).sum().backward()

When it is fine
---------------
Without `create_graph=True` nothing is differentiated twice, and every kernel will do.

References
----------
https://docs.pytorch.org/tutorials/intermediate/custom_function_double_backward_tutorial.html
https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html
"""

from gradwright.diagnostic import Diagnostic, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at
from gradwright.doctor.evidence.calls import span_of_call
from gradwright.doctor.evidence.second_derivative import (
    SecondDerivative,
    find_second_derivative,
    said_operation,
)
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.repairs.twice_differentiable import fixes_for_second_derivative
from gradwright.doctor.rules.base import Rule
from gradwright.doctor.syntax import decorators_of, dotted, span_of


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a second derivative that does not exist."""
    facts = crash.once(find_second_derivative)
    if facts is None or (facts.forward is None and facts.inner is None):
        return None
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{_said(facts)} has a first derivative only, and this needs its second",
        why=_why(facts),
        labels=_story(crash, facts).labels,
        fixes=fixes_for_second_derivative(facts),
        measured={"operation": facts.operation},
    )


def _said(facts: SecondDerivative) -> str:
    return f"`{said_operation(facts.operation)}`"


def _story(crash: Crash, facts: SecondDerivative) -> Story:
    story = Story()
    mark = _mark(facts)
    if mark is not None:
        story.tell(mark, "this says: one derivative only", primary=True)
    if facts.forward is not None:
        said = f"{_said(facts)} runs here in the forward"
        story.tell(facts.forward.span, said, primary=mark is None)
    if facts.inner is not None:
        inner = span_of_call(crash.journal, facts.inner)
        story.tell(inner, "its gradient is taken here, with a graph of its own")
    story.tell(asked_at(crash), "and differentiated again here")
    return story


def _mark(facts: SecondDerivative) -> Span | None:
    """The decorator that allows one derivative only."""
    if facts.function is None:
        return None
    tree, backward = facts.function.tree, facts.function.source("backward")
    if tree is None or backward is None:
        return None
    for decorator in decorators_of(backward):
        if (dotted(decorator) or "").endswith("once_differentiable"):
            return span_of(tree, decorator)
    return None


def _why(facts: SecondDerivative) -> str:
    if facts.function is not None:
        return (
            f"The loss contains a gradient through {_said(facts)}. Its `backward` is marked to run "
            "without recording, so autograd has nothing to differentiate there."
        )
    return (
        f"The loss contains a gradient through {_said(facts)}, so its backward kernel has to be "
        "differentiated in turn. torch has no formula for that."
    )


RULE = Rule("GW701", "no-second-derivative", "double-backward", __doc__ or "", explain)
