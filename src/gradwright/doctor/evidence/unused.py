"""Inputs of `torch.autograd.grad` that the outputs do not depend on, and why not."""

import ast
from dataclasses import dataclass

import torch
from torch.autograd.graph import Node, get_gradient_edge

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lineage import Lineage, lies_in
from gradwright.doctor.evidence.lines import Line, line_of_operation, line_of_tensor
from gradwright.doctor.journal import Operation
from gradwright.doctor.syntax import is_named
from gradwright.graph import is_accumulator, leaves, reachable
from gradwright.graph.walk import leaf_of

_LOOKED_AT = 20_000


@dataclass(frozen=True, slots=True)
class Break:
    """The operation that made a new leaf, or dropped the history, on the way to the outputs."""

    line: Line
    kind: str  # "parameter", "leaf", or the journal's word for the cut


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
    """The last step on the way from the first unused input to the outputs that forgets it."""
    wanted = crash.journal.operations.of(tensors[0])
    if wanted is None:
        return None
    lineage = crash.once(Lineage)
    below = lineage.forward_from(wanted) - {wanted.index}
    for number, (operation, leaf) in enumerate(lineage.back_from(_below_outputs(crash))):
        if number > _LOOKED_AT:
            break
        if operation.index not in below:
            continue
        if operation.cut:
            return _as_break(crash, operation, operation.cut)
        if leaf is not None and operation.requires_grad:
            return _as_break(crash, operation, _leaf_kind(crash, operation))
    return None


def _below_outputs(crash: Crash) -> list[Operation]:
    """What is known of the outputs and of the leaves of their graph."""
    tensors = [*crash.roots(), *leaves(crash.root_nodes())]
    known = (crash.journal.operations.of(tensor) for tensor in tensors)
    return [one for one in known if one is not None]


def _leaf_kind(crash: Crash, operation: Operation) -> str:
    """How the result became a leaf: by `nn.Parameter` on its line, or in a way not seen."""
    line = line_of_operation(crash.journal, operation)
    tree, statement = (line.tree, line.statement) if line is not None else (None, None)
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)] if statement else []
    named = tree is not None and any(is_named(tree, one.func, {"Parameter"}) for one in calls)
    return "parameter" if named else "leaf"


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
    used = [leaf_of(node) for node in nodes if is_accumulator(node)]
    related = any(lies_in(one, used) for one in crash.journal.operations.ancestors(made))
    return line_of_operation(crash.journal, made) if related else None
