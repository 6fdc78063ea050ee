"""Who changed a tensor that a graph node had saved for backward."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.journal import EngineCall, Journal, Site, Write
from gradwright.doctor.journal.engine import mark_of, needed_for
from gradwright.doctor.journal.operations import storage_of
from gradwright.doctor.journal.optimizers import OptimizerStep
from gradwright.doctor.kinds import is_a
from gradwright.graph import is_accumulator, leaves, saved_state

_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
_LOOKED_AT = 2_000  # nodes from the failing one on that are asked for further changes
_NEARBY = 20  # nodes among which one has saved a tensor
_OUTPUTS = {"result", "output", "out", "result0", "values", "grad_input"}


@dataclass(frozen=True, slots=True)
class Modified:
    """A graph node that saved a tensor which was changed in place afterwards."""

    node: Node
    tensor: torch.Tensor | None  # as the node holds it: often a view of the user's tensor
    storage: int
    expected: int  # version when it was saved
    found: int  # version now

    @property
    def number(self) -> int:
        """Where the node stands in the order of making."""
        return self.node._sequence_nr()


@dataclass(frozen=True, slots=True)
class Change:
    """The first thing that changed a saved tensor: a recorded write or an optimizer step."""

    place: int
    node: int  # number of the next node when it happened
    write: Write | None = None
    step: OptimizerStep | None = None


@dataclass(frozen=True, slots=True)
class SavedChange:
    """The facts of one failing backward: what was saved, who changed it, which call needed it."""

    modified: Modified
    change: Change | None
    call: EngineCall
    others: tuple[Modified, ...]  # further nodes of the same graph in the same state
    earlier: EngineCall | None  # the call over the retained graph that ran the node before
    carried: bool  # the node belongs to an earlier round of the loop that failed

    @property
    def by_step(self) -> bool:
        """Whether an optimizer step made the change."""
        return self.change is not None and self.change.step is not None

    @property
    def after_earlier_run(self) -> bool:
        """Whether an earlier backward had used the graph, and the change came since it began."""
        if self.earlier is None or self.by_step:
            return False
        return self.change is None or self.change.node >= self.earlier.node


def find_saved_change(crash: Crash) -> SavedChange | None:
    """The node the engine stopped at because a saved tensor has a newer version."""
    call = crash.call
    if call is None or "modified by an inplace operation" not in crash.message:
        return None
    every = list(_modified_nodes(crash))
    if not every:
        return None
    first, *others = every
    change = change_of(crash.journal, first)
    earlier = _earlier_run(crash.journal, first, call)
    carried = change is not None and _is_carried(crash, first, change)
    return SavedChange(first, change, call, tuple(others), earlier, carried)


def _is_carried(crash: Crash, modified: Modified, change: Change) -> bool:
    """Whether the code around the node ran again since the change, or ran before it already.

    A loss that is only finished after a step, in one round of the loop, is not carried.
    """
    timeline = crash.journal.main
    if timeline.visits(timeline.place_of(modified.number), since=change.node):
        return True
    numbers = (node._sequence_nr() for node in crash.engine_nodes())
    places = {timeline.place_of(one) for one in numbers if change.node <= one < 2**62}
    rounds = zip(timeline.starts, timeline.places, strict=True)
    return any(modified.number < start < change.node and place in places for start, place in rounds)


def _modified_nodes(crash: Crash) -> Iterator[Modified]:
    order = crash.engine_nodes()
    inputs = crash.engine_inputs()
    if inputs:
        needed = needed_for(crash.root_nodes(), inputs)
        order = [node for node in order if node in needed]
    begin = 0 if crash.call is None or crash.call.retain_graph else _where_it_stopped(order)
    found = list(_modified_in(order[begin : begin + _LOOKED_AT]))
    yield from found or _modified_in(order)


def _where_it_stopped(order: list[Node]) -> int:
    """A little before the node at which the engine stopped: what it had run is freed.

    Bisection: looking at each of 10,000 nodes takes 75 ms (benchmarks/explanation_time.py).
    """
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        nearby = (saved_state(node).state for node in order[middle : middle + _NEARBY])
        state = next((one for one in nearby if one != "none"), "none")
        if state == "freed":
            low = middle + 1
        else:
            high = middle
    return max(0, low - _NEARBY)


def _modified_in(order: list[Node]) -> Iterator[Modified]:
    for node in order:
        if is_accumulator(node):
            continue
        state = saved_state(node)
        versions = _VERSIONS.search(state.message) if state.state == "modified" else None
        if versions is not None:
            storage = storage_of(state.tensor) if state.tensor is not None else 0
            found, expected = int(versions[1]), int(versions[2])
            yield Modified(node, state.tensor, storage, expected, found)


def change_of(journal: Journal, modified: Modified) -> Change | None:
    """The first change after the node was made."""
    step = next((one for one in _steps_on(journal, modified)), None)
    for write in journal.operations.writes:
        if write.storage != modified.storage or write.node <= modified.number:
            continue
        if not modified.expected < write.version <= modified.found:
            continue
        if step is not None and (step.node < write.node or _within(journal, write, step)):
            break
        return Change(write.place, write.node, write=write)
    if step is not None:
        return Change(step.place, step.node, step=step)
    return _seen_before(journal, modified)


def _seen_before(journal: Journal, modified: Modified) -> Change | None:
    """Without a record of the change: the line that changed the same memory in an earlier step."""
    first = next(iter(journal.calls.remembered()), None)
    for write in reversed(journal.operations.writes):
        if first is None or write.node < first.node:
            return None
        if modified.storage and write.storage == modified.storage:
            return Change(write.place, modified.number + 1, write=write)
    return None


def _steps_on(journal: Journal, modified: Modified) -> Iterator[OptimizerStep]:
    """Optimizer steps after the node was made that own the tensor, in order."""
    for step in journal.optimizers.remembered():
        optimizer = step.optimizer() if step.node > modified.number else None
        if optimizer is None or not modified.storage:
            continue
        owned = (p for group in optimizer.param_groups for p in group["params"])
        if any(is_a(p, torch.Tensor) and storage_of(p) == modified.storage for p in owned):
            yield step


def _within(journal: Journal, write: Write, step: OptimizerStep) -> bool:
    """Whether the write was made by the code that the step ran."""
    place = write.place
    while place:
        if place == step.place:
            return True
        place = journal.places.parent(place)
    return False


def _earlier_run(journal: Journal, modified: Modified, call: EngineCall) -> EngineCall | None:
    """The last call before `call` that ran the node and kept its graph."""
    mark = mark_of(modified.node)
    if mark is not None and mark != call.index:
        return journal.calls[mark]
    for earlier in reversed(journal.calls.remembered()):
        if earlier.index >= call.index or earlier.nested or earlier.marked:
            continue
        if earlier.node <= modified.number:
            return None
        if earlier.retain_graph and set(earlier.roots) & set(call.roots):
            return earlier
    return None


def slot_of(node: Node) -> str:
    """What the node saved: `output`, `input` or `tensor`."""
    for name in dir(type(node)):
        if name.startswith("_saved_"):
            try:
                getattr(node, name)
            except RuntimeError as error:
                if "modified by an inplace" in str(error):
                    slot = name.removeprefix("_saved_")
                    return "output" if slot in _OUTPUTS else "input"
    return "tensor"


def said_node(node: Node) -> str:
    """The operation as its user calls it: SoftmaxBackward0 is `softmax`."""
    name = node.name().rpartition("::")[2]
    plain = re.sub(r"Backward(_?\w*)?\d*$", "", name)
    if isinstance(node, torch._C._FunctionBase):
        return f"`{plain or name}`"
    return "`" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain).lower() + "`"


def shared_lines(stacks: list[tuple[Site, ...]]) -> tuple[Site, ...] | None:
    """The lines at which the deepest function common to all stacks was running.

    Stacks are innermost first; the answer has one site per stack, in their order.
    """
    common: tuple[Site, ...] | None = None
    for sites in zip(*(tuple(reversed(stack)) for stack in stacks), strict=False):
        if any(site.code is not sites[0].code for site in sites):
            break
        common = tuple(sites)
        if any(site.line != sites[0].line for site in sites):
            break
    return common


def name_of_memory(names: dict[int, str], crash: Crash, modified: Modified) -> str:
    """The name of the parameter or buffer whose memory was saved; empty if it is none."""
    for _, module in modules_in_sight(crash):
        for tensor in (*module.parameters(), *module.buffers()):
            if modified.storage and storage_of(tensor) == modified.storage:
                return names.get(id(tensor), "")
    return ""


def is_parameter_memory(crash: Crash, modified: Modified) -> bool:
    """Whether a parameter's memory was saved, by the modules in sight or by its graph's leaves."""
    for _, module in modules_in_sight(crash):
        if any(storage_of(parameter) == modified.storage for parameter in module.parameters()):
            return True
    below = leaves([modified.node])
    return any(
        isinstance(leaf, torch.nn.Parameter) and storage_of(leaf) == modified.storage
        for leaf in below
    )
