"""An operation with recording on returned a tensor without a graph, and the loss depends on it.

What it does
------------
Follows the loss back to the operation that read a tensor with a graph and returned one without:
`detach()`, `.data`, `.item()` or numpy and back, `torch.tensor(...)` of tensors, a comparison,
`argmax` or another integer result.

Why it hurts
------------
Behind that line the values are right and the connection is gone. Backward from the loss finds no
trainable tensor.

Example
-------
    loss = torch.tensor([first, second]).mean()

Use instead
-----------
    loss = torch.stack([first, second]).mean()

When it is fine
---------------
For targets, metrics and logs. Cut a copy, and give the original to `backward`.

References
----------
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html
https://docs.pytorch.org/docs/stable/generated/torch.tensor.html
"""

from gradwright.diagnostic import Diagnostic, Fix, Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at, said_loss
from gradwright.doctor.evidence.escapes import Passage
from gradwright.doctor.evidence.frozen import frozen_feeds
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.spans import span_of_operation, span_of_site
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.journal import Operation
from gradwright.doctor.repairs.cuts import fixes_for_cut
from gradwright.doctor.repairs.values import fixes_for_passage
from gradwright.doctor.rules.base import Rule

_OFF = ("recording-off", "inference")
_SAYS = {
    "detach": "`detach()` returns the same values without their graph",
    "data": "`.data` returns the same values without their graph",
    "copy": "a new tensor is made from the values alone; the graph stays behind",
    "integer": "the result is {dtype}: it has no gradient, and the graph ends here",
    "no-derivative": "`{name}` has no derivative: the graph ends here",
}


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a loss that was cut off by an operation."""
    severance = crash.once(find_severance)
    if severance is None:
        return None
    cut, passage = severance.cut, severance.passage
    if cut is not None and severance.trains and (passage is None or cut is not passage.cut):
        return None if cut.cut in _OFF else _for_cut(crash, severance, cut)
    if passage is not None:
        return _for_passage(crash, passage)
    if cut is None or cut.cut in _OFF or any(feed.wanted for feed in crash.once(frozen_feeds)):
        return None
    return _for_cut(crash, severance, cut)


def _for_cut(crash: Crash, severance: Severance, cut: Operation) -> Diagnostic:
    story = Story()
    said = _SAYS[cut.cut].format(name=spoken(cut), dtype=str(cut.dtype).removeprefix("torch."))
    span = span_of_operation(crash.journal, cut)
    story.tell(span, said, primary=True)
    return _diagnostic(crash, story, span, fixes_for_cut(crash, cut), len(severance.cuts))


def _for_passage(crash: Crash, passage: Passage) -> Diagnostic:
    journal = crash.journal
    story = Story()
    escape = passage.escapes[0]
    stack = journal.places.stack(escape.place)
    out = span_of_site(stack[0]) if stack else None
    cut = span_of_operation(journal, passage.cut) if passage.cut.cut else None
    if cut is not None and out is not None and cut.line != out.line:
        story.tell(cut, _SAYS["detach"])
    story.tell(out, f"{_leaving(escape.name)}: only the value goes on", primary=True)
    back = span_of_operation(journal, passage.back)
    if back is None:
        back = _at(crash, passage.back)
    if back != out:
        story.tell(back, "comes back as a constant, which no backward can leave")
    return _diagnostic(crash, story, out, fixes_for_passage(crash, passage), 1)


def _at(crash: Crash, operation: Operation) -> Span | None:
    stack = crash.journal.places.stack(operation.place)
    return span_of_site(stack[0]) if stack else None


def _leaving(name: str) -> str:
    return "the tensor becomes " + ("a numpy array" if "numpy" in name else "a Python number")


def _diagnostic(
    crash: Crash, story: Story, span: Span | None, fixes: tuple[Fix, ...], cuts: int
) -> Diagnostic:
    loss = said_loss(crash)
    story.tell(asked_at(crash), f"backward starts from {loss}, which has no graph")
    call = crash.call
    where = f" in line {span.line}" if span is not None else ""
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{loss} has no graph: it is cut off{where}",
        why=(
            "Autograd follows recorded operations from the loss to the parameters. What comes "
            f"before{where.replace(' in', '')} is recorded, but the loss no longer hangs on it."
        ),
        labels=story.labels,
        fixes=fixes,
        avoid=(
            "`requires_grad_(True)` on the loss: backward then runs, and no parameter gets a "
            "gradient."
        ),
        measured={
            "cuts": cuts,
            "call": call.index + 1 if call is not None else 0,
            "step": call.step if call is not None else 0,
        },
    )


def spoken(cut: Operation) -> str:
    """The operation as the user would name it."""
    return cut.name.strip("_") or "this operation"


RULE = Rule("GW202", "graph-cut", "no-grad", __doc__ or "", explain)
