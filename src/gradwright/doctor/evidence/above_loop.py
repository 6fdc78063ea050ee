"""A tensor that a function builds above the loop in which it calls backward."""

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import around_site
from gradwright.doctor.evidence.reuse import Reuse, shared_frame_line
from gradwright.doctor.syntax.where import loops_around


def built_above_loop(crash: Crash, reuse: Reuse) -> bool:
    """Whether one pass of a line served several passes of a loop below it.

    The function may run in every step, and the line with it: the graph is still this call's own,
    and the loop, not the step before, used it up.
    """
    older = crash.journal.stack_of_node(reuse.joints[0].carried._sequence_nr())
    for call in (reuse.freed_by, reuse.call):
        parted = shared_frame_line(older, crash.journal.places.stack(call.place))
        built = around_site(parted[0]) if parted is not None else None
        asking = around_site(parted[1]) if parted is not None else None
        if built is None or asking is None or parted is None or built[0] is not asking[0]:
            return False
        outer, inner = loops_around(*built), loops_around(*asking)
        extra = inner[: len(inner) - len(outer)]
        if not extra or inner[len(extra) :] != outer or parted[0].line >= extra[-1].lineno:
            return False
    return True
