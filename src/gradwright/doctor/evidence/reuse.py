"""A second backward through a freed graph: which node, who freed it, where old meets new."""

from dataclasses import dataclass

from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import EngineCall, Journal, Site, mark_of
from gradwright.doctor.journal.engine import needed_for
from gradwright.graph import edges_of, is_accumulator, saved_state


@dataclass(frozen=True, slots=True)
class Joint:
    """An edge from the graph of this backward into an older one."""

    consumer: Node | None  # made after the earlier backward; None: the root itself is old
    carried: Node  # made before it


@dataclass(frozen=True, slots=True)
class Reuse:
    """The facts of one second backward.

    `freed` is the node the engine stopped at, `freed_by` the call that had used it up. `joints`
    are the edges by which new nodes reach it, the nearest first; empty when everything that this
    call wanted to walk was already there when `freed_by` ran.
    """

    freed: Node
    freed_by: EngineCall
    call: EngineCall
    joints: tuple[Joint, ...]
    order: tuple[Node, ...]

    @property
    def same_root(self) -> bool:
        """Whether the same loss was used before."""
        return bool(set(self.call.roots) & set(self.freed_by.roots))


def find_reuse(crash: Crash) -> Reuse | None:
    """Replay the engine's order and stop where the engine stopped."""
    call, roots = crash.call, crash.root_nodes()
    if call is None or not roots:
        return None
    order = crash.engine_nodes()
    inputs = crash.engine_inputs()
    if inputs:
        needed = needed_for(roots, inputs)
        order = [node for node in order if node in needed]
    for node in order:
        earlier = freeing_call(crash.journal, node, call)
        if earlier is None or earlier.retain_graph:
            continue
        if saved_state(node).state in ("freed", "hooked"):
            return Reuse(node, earlier, call, _joints(node, order, earlier.node), tuple(order))
    return None


def freeing_call(journal: Journal, node: Node, call: EngineCall) -> EngineCall | None:
    """The earlier call that ran `node`, by its mark or, without marks, by its age."""
    if is_accumulator(node):
        return None
    mark = mark_of(node)
    if mark is not None:
        return journal.calls[mark]
    number = node._sequence_nr()
    for earlier in reversed(journal.calls.remembered()):
        if earlier.index >= call.index or earlier.nested:
            continue
        if earlier.node <= number:
            return None
        if not earlier.marked and any(number <= root for root in earlier.roots):
            return earlier
    return None


def _joints(freed: Node, order: list[Node], age: int) -> tuple[Joint, ...]:
    """Climb from the freed node; an edge into a node younger than `age` is a joint."""
    above: dict[Node, list[Node]] = {}
    for node in order:
        for child in edges_of(node):
            above.setdefault(child, []).append(node)
    level, seen = [freed], {freed}
    joints: list[Joint] = []
    while level:
        upper: list[Node] = []
        for node in level:
            for parent in above.get(node, ()):
                if parent._sequence_nr() >= age:
                    joints.append(Joint(parent, node))
                elif parent not in seen:
                    seen.add(parent)
                    upper.append(parent)
        level = upper
    return tuple(joints) + _other_joints(order, age, joints)


def _other_joints(order: list[Node], age: int, known: list[Joint]) -> tuple[Joint, ...]:
    """Further edges into older graphs, not on the way to the freed node."""
    met = {joint.carried for joint in known}
    found: dict[Node, Joint] = {}
    for node in order:
        if is_accumulator(node) or node._sequence_nr() < age:
            continue
        for child in edges_of(node):
            old = not is_accumulator(child) and child._sequence_nr() < age
            if old and child not in met:
                found.setdefault(child, Joint(node, child))
    return tuple(found.values())


def shared_frame_line(older: tuple[Site, ...], newer: tuple[Site, ...]) -> tuple[Site, Site] | None:
    """Where two user stacks part: the deepest function they have in common, at its two lines.

    Both stacks are innermost first.
    """
    common: tuple[Site, Site] | None = None
    for old, new in zip(reversed(older), reversed(newer), strict=False):
        if old.code is not new.code:
            break
        common = (old, new)
        if old.line != new.line:
            break
    return common
