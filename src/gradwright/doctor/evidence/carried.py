"""A graph that a retained backward let through into a later step."""

from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.reuse import Joint, Reuse
from gradwright.doctor.evidence.writes import SavedChange
from gradwright.doctor.journal import EngineCall
from gradwright.graph import edges_of, is_accumulator, reachable


def carried_graph(crash: Crash, facts: SavedChange) -> Reuse | None:
    """Where the graph of this step hangs on the old one that holds the changed tensor.

    It is told as the reuse it would have been without `retain_graph=True`.
    """
    if not facts.carried or facts.change is None:
        return None
    earlier = _call_before(crash, facts.change.node)
    order = crash.engine_nodes()
    joints = _joints(facts.modified.node, order, facts.change.node)
    if earlier is None or not joints:
        return None
    return Reuse(facts.modified.node, earlier, facts.call, joints, tuple(order))


def _call_before(crash: Crash, number: int) -> EngineCall | None:
    calls = crash.journal.calls.remembered()
    before = [call for call in calls if call.node <= number and not call.nested and not call.raised]
    return before[-1] if before else None


def _joints(old: Node, order: list[Node], age: int) -> tuple[Joint, ...]:
    """Edges from nodes made at `age` or later into older ones that lead to `old`."""
    found: dict[Node, Joint] = {}
    for node in order:
        if is_accumulator(node) or node._sequence_nr() < age:
            continue
        for child in edges_of(node):
            if is_accumulator(child) or child._sequence_nr() >= age or child in found:
                continue
            if old in reachable([child]):
                found[child] = Joint(node, child)
    return tuple(found.values())
