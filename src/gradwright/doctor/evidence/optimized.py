"""What an optimizer was given that it refused."""

from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_node, line_of_operation
from gradwright.doctor.kinds import is_a
from gradwright.graph import edges_of, is_accumulator, leaves


@dataclass(frozen=True, slots=True)
class Refused:
    """The tensors of a parameter group that were computed from others."""

    tensors: tuple[torch.Tensor, ...]
    total: int  # tensors in the group
    leaves: tuple[torch.Tensor, ...]  # below the first of them
    made: Line | None  # where the first stopped being a leaf
    last: Line | None  # where it got its last value


def find_refused(crash: Crash) -> Refused | None:
    """Read the group from the frame of `add_param_group`."""
    code = torch.optim.Optimizer.add_param_group.__code__
    inner = getattr(torch.optim.Optimizer.add_param_group, "__wrapped__", None)
    codes = {code, getattr(inner, "__code__", code)}
    frame = next((one for one in reversed(crash.frames) if one.code in codes), None)
    group = frame.frame.f_locals.get("param_group") if frame is not None else None
    params = group.get("params") if is_a(group, dict) else None
    if not is_a(params, list, tuple):
        return None
    refused = [one for one in params if is_a(one, torch.Tensor) and not one.is_leaf]
    if not refused:
        return None
    return _facts(crash, refused, len(params))


def _facts(crash: Crash, refused: list[torch.Tensor], total: int) -> Refused:
    first = refused[0]
    assert first.grad_fn is not None
    nodes = _chain(first)
    last = _line_of_result(crash, first) or line_of_node(crash.journal, nodes[0])
    made = last if len(nodes) == 1 else line_of_node(crash.journal, nodes[-1])
    below = leaves([first.grad_fn])
    return Refused(tuple(refused), total, tuple(below), made, last)


def _line_of_result(crash: Crash, tensor: torch.Tensor) -> Line | None:
    operation = crash.journal.operations.of(tensor)
    if operation is None or operation.source:
        return None
    return line_of_operation(crash.journal, operation)


def _chain(tensor: torch.Tensor) -> list[torch.autograd.graph.Node]:
    """The nodes from the tensor down towards its leaf, as long as there is one way."""
    assert tensor.grad_fn is not None
    nodes = [tensor.grad_fn]
    while True:
        below = [node for node in edges_of(nodes[-1]) if not is_accumulator(node)]
        if len(below) != 1:
            return nodes
        nodes.append(below[0])
