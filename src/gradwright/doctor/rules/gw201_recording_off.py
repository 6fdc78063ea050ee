"""The loss, or a part of it, was computed while the recording of gradients was off.

What it does
------------
Finds the operations that read tensors with a graph and recorded none, and who had turned the
recording off for them: a `with` block, a decorator, a `set_grad_enabled(False)` that nobody took
back, or a library function that called the user's code.

Why it hurts
------------
With recording off, operations compute values only. Their results have no graph, so a backward has
nowhere to go. The line that fails is often far from the line that turned recording off.

Example
-------
    @torch.no_grad()
    def evaluate(model, batch):
        inner = model.clone().adapt(batch)  # calls backward inside

Use instead
-----------
    def adapt(self, batch):
        with torch.enable_grad():
            loss = self.loss(batch)
            loss.backward()

When it is fine
---------------
Where nothing is differentiated: validation, targets, moving averages. Leave it on there.

References
----------
https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation
https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad_mode.inference_mode.html
"""

from collections.abc import Sequence

from gradwright.diagnostic import Diagnostic
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asked_at, said_loss
from gradwright.doctor.evidence.frozen import frozen_feeds
from gradwright.doctor.evidence.regions import Region
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.spans import span_of_operation
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.stretches import beginning_of, last_stretch
from gradwright.doctor.evidence.switches import region_of
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.repairs.recording import fixes_for_recording_off, meeting
from gradwright.doctor.rules.base import Rule

_OFF = ("recording-off", "inference")


def explain(crash: Crash) -> Diagnostic | None:
    """Explain a backward from a loss that was computed with recording off."""
    severance = crash.once(find_severance)
    if severance is None:
        return None
    if not severance.trains and any(feed.wanted for feed in crash.once(frozen_feeds)):
        return None
    cut = _cut(crash, severance)
    region = region_of(crash, _stack(crash, cut), cut) if _was_off(crash, cut) else None
    if region is None or _is_checkpoint(crash, region):
        return None
    if region.held:
        cut = _outside(crash, severance, region)
    return Diagnostic(
        code=RULE.code,
        name=RULE.name,
        category=RULE.category,
        severity="error",
        summary=f"{said_loss(crash)} has no graph: {_who(region)} turned recording off",
        why=_why(crash, region),
        labels=_story(crash, region, cut).labels,
        fixes=fixes_for_recording_off(crash, severance, region),
        avoid=(
            "`requires_grad_(True)` on the loss: backward then runs, and no parameter gets a "
            "gradient."
        ),
        measured=_measured(crash, severance),
    )


def _cut(crash: Crash, severance: Severance) -> Operation | None:
    """The operation to speak of: one that the failing function itself ran, if there is one."""
    call = crash.call
    if call is None or call.recording:
        return severance.cut
    _, lines = meeting(crash, severance)
    frame = meeting(crash, severance)[0]
    off = [cut for cut in severance.cuts if cut.cut in _OFF]
    # the stretch that still lasts is the one to speak of, not those that have ended since
    off = [cut for cut in off if _still_lasts(crash, cut)] or off
    for cut in sorted(off, key=lambda one: one.index):
        stack = crash.journal.places.stack(cut.place)
        if frame is not None and lines and any(site.code is frame.code for site in stack):
            return cut
    return off[0] if off else severance.cut


def _outside(crash: Crash, severance: Severance, region: Region) -> Operation | None:
    """A cut in the lines that consume a generator: inside of it recording is off on purpose."""
    for cut in sorted(severance.cuts, key=lambda one: one.index):
        stack = crash.journal.places.stack(cut.place)
        inside = any(site.code is region.site.code for site in stack)
        if cut.cut in _OFF and _still_lasts(crash, cut) and not inside:
            return cut
    return None


def _still_lasts(crash: Crash, cut: Operation) -> bool:
    """Whether recording has not been on since the cut."""
    switches = crash.journal.operations.switches
    return cut.switch is not None and beginning_of(switches, cut.switch) is last_stretch(switches)


def _was_off(crash: Crash, cut: Operation | None) -> bool:
    if cut is not None:
        return cut.cut in _OFF
    return crash.call is not None and not crash.call.recording


def _stack(crash: Crash, cut: Operation | None) -> Sequence[Site]:
    if cut is not None:
        return crash.journal.places.stack(cut.place)
    return [frame.site for frame in reversed(crash.user_frames)]


def _is_checkpoint(crash: Crash, region: Region) -> bool:
    """Reentrant checkpointing turns recording off on purpose: another rule's subject."""
    return region.kind == "library" and "checkpoint" in region.context


def _who(region: Region) -> str:
    if region.kind == "library":
        return f"`{region.context}`" if region.context else f"line {region.site.line}"
    short = region.context.rpartition(".")[2] or "a context"
    where = {"with": "the block", "decorator": "the decorator", "left-on": "the call"}
    return f"{where[region.kind]} `{short}` in line {region.site.line}"


def _story(crash: Crash, region: Region, cut: Operation | None) -> Story:
    story = Story()
    story.tell(region.span, _said_region(region), primary=True)
    if cut is not None:
        span = span_of_operation(crash.journal, cut)
        story.tell(span, "cut here: this reads tensors that require grad, and nothing is recorded")
    story.tell(asked_at(crash), f"backward starts from {said_loss(crash)}, which has no graph")
    return story


def _said_region(region: Region) -> str:
    if region.held:
        return "a generator waits inside this block: recording stays off in whoever consumes it"
    if region.kind == "with":
        return "recording is off inside this block"
    if region.kind == "decorator":
        name = getattr(region.node, "name", "this function")
        return f"recording is off in `{name}` and in all it calls"
    if region.kind == "left-on":
        return "recording is turned off here, and nothing turns it on again"
    who = f"`{region.context}`" if region.context else "the library function called here"
    return f"{who} turns recording off, then calls your code"


def _why(crash: Crash, region: Region) -> str:
    call = crash.call
    if region.held:
        return (
            "Grad mode belongs to the thread, not to a function. The generator yields before its "
            "block has ended, so the lines that consume it run with recording off."
        )
    if region.kind == "left-on":
        return (
            "`set_grad_enabled(False)` as a plain call lasts until somebody switches back. "
            "Training went on with recording off, so the new loss has no graph."
        )
    if call is not None and not call.recording:
        return (
            "The backward runs inside the stretch where recording is off, so the operations "
            "before it left no graph to walk."
        )
    return (
        "Recording was on again at the backward, but what was computed before has no graph, "
        "and nothing else ties the loss to a trainable tensor."
    )


def _measured(crash: Crash, severance: Severance) -> dict[str, str | int | float | bool]:
    call = crash.call
    return {
        "call": call.index + 1 if call is not None else 0,
        "step": call.step if call is not None else 0,
        "recording_at_call": call.recording if call is not None else False,
        "cuts": len(severance.cuts),
    }


RULE = Rule("GW201", "recording-off", "no-grad", __doc__ or "", explain)
