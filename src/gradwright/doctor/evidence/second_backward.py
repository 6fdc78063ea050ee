"""What the four rules about a second backward have in common."""

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import said_call, span_of_call
from gradwright.doctor.evidence.origin import Origin, find_origin
from gradwright.doctor.evidence.reuse import Reuse, find_reuse
from gradwright.doctor.evidence.story import Story

Facts = tuple[Reuse, Origin]


def second_backward(crash: Crash) -> Facts | None:
    """The reuse and the origin of the tensor that was used again, if that is what happened."""
    if "a second time" not in crash.message and "already been freed" not in crash.message:
        return None
    reuse = find_reuse(crash)
    if reuse is None:
        return None
    if not reuse.joints:
        return reuse, find_origin(crash, crash.root_nodes()[0], None)
    joint = reuse.joints[0]
    return reuse, find_origin(crash, joint.carried, joint.consumer)


def tell_calls(story: Story, crash: Crash, reuse: Reuse) -> None:
    """The two backward calls: the one that freed, and the one that needed it again."""
    first = span_of_call(crash.journal, reuse.freed_by)
    second = span_of_call(crash.journal, reuse.call)
    story.tell(first, f"{said_call(reuse.freed_by)} freed what it walked")
    story.tell(second, f"{said_call(reuse.call)} needed it again")


def measured(crash: Crash, reuse: Reuse) -> dict[str, str | int | float | bool]:
    """Numbers for the report."""
    return {
        "freed_by_call": reuse.freed_by.index + 1,
        "failing_call": reuse.call.index + 1,
        "freed_in_step": reuse.freed_by.step,
        "failed_in_step": reuse.call.step,
        "node": reuse.freed.name(),
    }
