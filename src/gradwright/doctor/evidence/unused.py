"""Inputs of `torch.autograd.grad` that the outputs do not depend on, and why not."""

from dataclasses import dataclass

import torch
from torch.autograd.graph import Node, get_gradient_edge

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_operation, line_of_tensor
from gradwright.doctor.journal import Operation
from gradwright.doctor.journal.operations import storage_of
from gradwright.graph import is_accumulator, leaves, reachable
from gradwright.graph.walk import leaf_of

_LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True)
class Break:
    """The operation that made a new leaf, or dropped the history, on the way to the outputs."""

    line: Line
    kind: str  # "parameter", or the journal's word for the cut


@dataclass(frozen=True, slots=True)
class Unused:
    """The facts of a `grad` whose inputs are not all in the graph."""

    tensors: tuple[torch.Tensor, ...]
    positions: tuple[int, ...]
    total: int
    broken: Break | None  # they lead to the outputs, but for a cut
    renewed: Line | None  # they were made from what the outputs do depend on


def find_unused(crash: Crash) -> Unused | None:
    """Compare the inputs with the graph below the outputs."""
    inputs, nodes = crash.engine_inputs(), reachable(crash.root_nodes())
    pairs = [(index, one) for index, one in enumerate(inputs) if not _is_in(nodes, one)]
    if not pairs:
        return None
    tensors = tuple(tensor for _, tensor in pairs)
    broken = _find_break(crash, tensors)
    renewed = None if broken is not None else _find_renewed(crash, nodes, tensors)
    positions = tuple(index for index, _ in pairs)
    return Unused(tensors, positions, len(inputs), broken, renewed)


def _is_in(nodes: set[Node], tensor: torch.Tensor) -> bool:
    if not tensor.requires_grad:
        return False
    if tensor.grad_fn is not None:
        return tensor.grad_fn in nodes
    return get_gradient_edge(tensor).node in nodes


def _find_break(crash: Crash, tensors: tuple[torch.Tensor, ...]) -> Break | None:
    """A cut below the outputs whose history holds the first unused input."""
    operations = crash.journal.operations
    wanted = operations.of(tensors[0])
    roots = [operations.of(root) for root in crash.roots()]
    if wanted is None:
        return None
    for start in (root for root in roots if root is not None):
        for number, operation in enumerate(operations.ancestors(start)):
            if number > _LOOKED_AT:
                break
            if operation.cut and _leads_to(crash, operation, wanted):
                return _as_break(crash, operation, operation.cut)
    return _find_new_leaf(crash, wanted)


def _find_new_leaf(crash: Crash, wanted: Operation) -> Break | None:
    """A leaf below the outputs that shares its memory with a result of the unused input."""
    operations = crash.journal.operations
    memory = {storage_of(leaf) for leaf in leaves(crash.root_nodes())} - {0}
    for operation in reversed(operations.entries):
        if operation.source or operation.storage not in memory or operation.view:
            continue
        memory.discard(operation.storage)  # what lay there before was another tensor
        if operation.requires_grad and _leads_to(crash, operation, wanted):
            return _as_break(crash, operation, "parameter")
    return None


def _leads_to(crash: Crash, operation: Operation, wanted: Operation) -> bool:
    if wanted.index >= operation.index:
        return False
    return any(one.index == wanted.index for one in crash.journal.operations.ancestors(operation))


def _as_break(crash: Crash, operation: Operation, kind: str) -> Break | None:
    line = line_of_operation(crash.journal, operation)
    return Break(line, kind) if line is not None else None


def _find_renewed(crash: Crash, nodes: set[Node], tensors: tuple[torch.Tensor, ...]) -> Line | None:
    """Where the first input was made from something that the outputs do depend on."""
    first = tensors[0]
    if first.grad_fn is not None:
        if any(node in nodes for node in reachable([first.grad_fn])):
            return line_of_tensor(crash.journal, first)
        return None
    made = crash.journal.operations.of(first)
    if made is None or made.source:
        return None
    memory = {storage_of(leaf_of(node)) for node in nodes if is_accumulator(node)} - {0}
    related = any(one.storage in memory for one in crash.journal.operations.ancestors(made))
    return line_of_operation(crash.journal, made) if related else None
