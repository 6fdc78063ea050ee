"""Two backwards of one step over one graph: which part they share, and who wanted it."""

import ast
from dataclasses import dataclass

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.holders import Holder, find_holders
from gradwright.doctor.evidence.optimizers import optimizers_in_sight
from gradwright.doctor.evidence.origin import Origin, around_site, find_origin
from gradwright.doctor.evidence.reuse import Reuse, freeing_call, shared_frame_line
from gradwright.doctor.evidence.second_backward import second_backward
from gradwright.doctor.journal import NOWHERE, Site
from gradwright.doctor.syntax.where import loops_around
from gradwright.graph import edges_of, engine_order, is_accumulator, leaves

_CONSTANT = {"detach", "detach_", "data"}


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared part of two losses' graphs."""

    reuse: Reuse
    name: str  # the user's word for the shared tensor
    node: Node  # the node where the second loss joins the shared part
    built: Site | None
    first_loss: Holder | None
    first_node: Node | None  # the node of the first loss's graph that reads the shared part
    first_use: Site | None
    first_stack: tuple[Site, ...]  # the user stack of that node, the lines of the first loss only
    unwanted: bool  # the first loss's optimizer does not hold what lies below
    by_grad: bool  # the earlier call was `grad`, and the loss is computed from what it returned

    @property
    def said(self) -> str:
        """The name in backticks, or plain words."""
        return f"`{self.name}`" if self.name else "one forward pass"


def find_shared(crash: Crash) -> Shared | None:
    """The facts, if both losses belong to the same step."""
    facts = crash.once(second_backward)
    if facts is None:
        return None
    reuse, origin = facts
    if reuse.joints and not (
        _in_header(crash, reuse)
        or _loop_over_losses(crash, reuse)
        or _same_pass(crash, reuse, origin)
    ):
        return None
    if not reuse.joints and reuse.same_root:
        return None
    node = reuse.joints[0].carried if reuse.joints else _branching(crash, reuse)
    named = find_origin(crash, node, None)
    loss = _first_loss(crash, reuse)
    reader = _reader(loss, node)
    use = crash.journal.stack_of_node(reader._sequence_nr()) if reader is not None else ()
    unwanted = reader is not None and (
        _unwanted(crash, reuse, node) or _on_the_side(crash, loss, node)
    )
    built = named.built
    own = tuple(site for site in use if not _runs_for_both(crash, reuse, node, site))
    first_use = next(iter(own if unwanted else ()), use[0] if use else None)
    by_grad = _from_gradient(crash, reuse)
    return Shared(reuse, named.name, node, built, loss, reader, first_use, own, unwanted, by_grad)


def _runs_for_both(crash: Crash, reuse: Reuse, shared: Node, site: Site) -> bool:
    """Whether a line of the first loss is one of a helper that built the second loss as well."""
    for node in reuse.order:
        if node._sequence_nr() <= shared._sequence_nr() or is_accumulator(node):
            continue
        stack = crash.journal.stack_of_node(node._sequence_nr())
        if any(one.code is site.code and one.line == site.line for one in stack):
            return True
    return False


def _in_header(crash: Crash, reuse: Reuse) -> bool:
    """Whether the loop that calls backward got its losses from the graph its own header built."""
    older = crash.journal.stack_of_node(reuse.joints[0].carried._sequence_nr())
    newer = crash.journal.places.stack(reuse.call.place)
    parted = shared_frame_line(older, newer)
    if parted is None:
        return False
    header, body = around_site(parted[0]), around_site(parted[1])
    if header is None or body is None or not isinstance(header[1], ast.For):
        return False
    return header[1] in loops_around(*body)


def _loop_over_losses(crash: Crash, reuse: Reuse) -> bool:
    """Whether an inner loop calls backward several times between two optimizer steps.

    What it walks was built in the same pass of the outer loop, so each step builds it anew.
    """
    older = crash.journal.stack_of_node(reuse.joints[0].carried._sequence_nr())
    newer = crash.journal.places.stack(reuse.call.place)
    parted = shared_frame_line(older, newer)
    if parted is None or reuse.freed_by.step != reuse.call.step:
        return False
    built, body = around_site(parted[0]), around_site(parted[1])
    if built is None or body is None or reuse.freed_by.place != reuse.call.place:
        return False
    outer, inner = loops_around(*built), loops_around(*body)
    return bool(outer) and len(inner) > len(outer) and inner[len(inner) - len(outer) :] == outer


def _same_pass(crash: Crash, reuse: Reuse, origin: Origin) -> bool:
    """Whether birth and reuse lie in one pass of the loop: no way back to its head between."""
    if origin.built is None or origin.reused is None or origin.built.code is not origin.reused.code:
        return _in_same_iteration(crash, reuse)
    built, reused = around_site(origin.built), around_site(origin.reused)
    if built is None or reused is None or built[0] is not reused[0]:
        return False
    if origin.reused.line <= origin.built.line:
        return False
    return loops_around(*built) == loops_around(*reused) and _in_same_iteration(crash, reuse)


def _in_same_iteration(crash: Crash, reuse: Reuse) -> bool:
    """Whether the earlier backward was not asked for again on the way, and both calls differ."""
    return (
        reuse.freed_by.place != reuse.call.place
        and reuse.freed_by.place != NOWHERE
        and (
            not any(
                call.place == reuse.call.place
                for call in crash.journal.calls.remembered()
                if _made(reuse) <= call.node <= reuse.freed_by.node and not call.nested
            )
        )
    )


def _made(reuse: Reuse) -> int:
    return reuse.joints[0].carried._sequence_nr() if reuse.joints else reuse.freed._sequence_nr()


def _from_gradient(crash: Crash, reuse: Reuse) -> bool:
    """Whether the loss was computed from what the earlier `grad` call returned, not detached."""
    if reuse.freed_by.accumulate:
        return False
    operations = crash.journal.operations
    todo = [made for root in crash.roots() if (made := operations.of(root)) is not None]
    seen = {operation.index for operation in todo}
    while todo:
        operation = todo.pop()
        if operation.name == "grad" and operation.place == reuse.freed_by.place:
            return True
        if operation.name in _CONSTANT:
            continue
        new = [index for index in operation.parents if index not in seen]
        seen.update(new)
        todo.extend(one for index in new if (one := operations[index]) is not None)
    return False


def _branching(crash: Crash, reuse: Reuse) -> Node:
    """The topmost node of this graph that the earlier call had run."""
    for node in reuse.order:
        if freeing_call(crash.journal, node, reuse.call) is not None:
            return node
    return reuse.freed


def _first_loss(crash: Crash, reuse: Reuse) -> Holder | None:
    """The variable that still holds the loss of the earlier call."""
    roots = set(reuse.freed_by.roots)

    def is_first(tensor: torch.Tensor) -> bool:
        return tensor.grad_fn is not None and tensor.grad_fn._sequence_nr() in roots

    holders = find_holders(crash, is_first)
    return holders[0] if holders else None


def _reader(loss: Holder | None, node: Node) -> Node | None:
    """The node of the first loss's graph that reads the shared one."""
    if loss is None or loss.tensor.grad_fn is None:
        return None
    for parent in engine_order([loss.tensor.grad_fn]):
        if any(child is node for child in edges_of(parent)):
            return parent
    return None


def _on_the_side(crash: Crash, loss: Holder | None, node: Node) -> bool:
    """Whether the shared part is all that the second loss has, and another optimizer's.

    So it is in actor and critic: the first loss trains one network and takes the other one's
    output along. Where the second loss has parameters of its own, the shared part is a trunk.
    """
    if loss is None or loss.tensor.grad_fn is None:
        return False
    below = {id(leaf) for leaf in leaves([node])}
    first = {id(leaf) for leaf in leaves([loss.tensor.grad_fn])} - below
    second = {id(leaf) for leaf in leaves(crash.root_nodes())} - below
    holders = _optimizers_of(crash)
    mine = {holders[leaf] for leaf in first if leaf in holders}
    theirs = {holders[leaf] for leaf in below if leaf in holders}
    return not second and bool(mine) and bool(theirs) and not mine & theirs


def _optimizers_of(crash: Crash) -> dict[int, int]:
    """`id(parameter)` to the optimizer that holds it, for the optimizers in sight."""
    found: dict[int, int] = {}
    for optimizer in optimizers_in_sight(crash):
        for group in optimizer.param_groups:
            found.update({id(parameter): id(optimizer) for parameter in group["params"]})
    return found


def _unwanted(crash: Crash, reuse: Reuse, node: Node) -> bool:
    """Whether the optimizer that stepped between the calls leaves the shared leaves alone."""
    below = {id(leaf) for leaf in leaves([node])}
    between = [
        step
        for step in crash.journal.optimizers.remembered()
        if reuse.freed_by.step <= step.index < max(reuse.call.step, reuse.freed_by.step)
    ]
    if not between or not below:
        return False
    held: set[int] = set()
    for step in between:
        optimizer = step.optimizer()
        if optimizer is None:
            return False
        held.update(id(p) for group in optimizer.param_groups for p in group["params"])
    return not held & below
