"""The operation of the forward whose derivative cannot be differentiated again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.function_class import (
    FunctionClass,
    classes_in_graph,
    classes_of_user,
)
from gradwright.doctor.evidence.lines import Line, line_of_node, line_of_operation
from gradwright.doctor.journal import EngineCall

_QUOTED = re.compile(r"derivative for '?(?:aten::)?(\w+)'? is not implemented")
_LAST_BACKWARD = re.compile(r"Backward\d*$")  # `CdistBackwardBackward0` is made by a backward
_FUSED = "scaleddotproduct"
_NOT_PLAIN = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class SecondDerivative:
    """The forward operation and the call that asked for its first derivative."""

    operation: str  # as torch calls it: `cdist`
    forward: Line | None
    inner: EngineCall | None  # the call with create_graph=True
    function: FunctionClass | None  # for a Function marked once_differentiable


def find_second_derivative(crash: Crash) -> SecondDerivative | None:
    """From the exception's kind to the forward operation."""
    if "@once_differentiable" in crash.message:
        return _of_function(crash)
    match = _QUOTED.search(crash.message)
    if match is not None:
        name = plain_name(match[1])
        if name:
            return SecondDerivative(name, _forward_line(crash, name), inner_call(crash), None)
    if "cuDNN RNN" in crash.message:
        return SecondDerivative(
            "_cudnn_rnn", _forward_line(crash, "cudnnrnn"), inner_call(crash), None
        )
    return None


def plain_name(operation: str) -> str:
    """The forward operation behind a name such as `_cdist_backward`; empty for a forward one."""
    name = operation.strip("_")
    return re.sub(r"_backward.*$", "", name) if "_backward" in name else ""


def said_operation(operation: str) -> str:
    """The function that users call: kernels have longer names."""
    if operation.startswith("scaled_dot_product"):
        return "scaled_dot_product_attention"
    return "grid_sample" if operation.startswith("grid_sampler") else operation


def inner_call(crash: Crash) -> EngineCall | None:
    """The last call that built a graph of its own backward."""
    calls = [call for call in crash.journal.calls.remembered() if call.create_graph]
    return calls[-1] if calls else None


def _of_function(crash: Crash) -> SecondDerivative | None:
    marked = [one for one in classes_in_graph(crash) if is_once_differentiable(one)]
    if not marked:  # the mark itself ends the graph, so the node may lie behind it
        known = [one for one in classes_of_user(crash) if is_once_differentiable(one)]
        marked = known if len(known) == 1 else []
    if not marked:
        return None
    function = marked[0]
    line = line_of_node(crash.journal, function.node) if function.node is not None else None
    return SecondDerivative(function.name, line, inner_call(crash), function)


def is_once_differentiable(function: FunctionClass) -> bool:
    """Whether `backward` carries the mark."""
    backward = getattr(function.kind, "backward", None)
    wrapper = torch.autograd.function.once_differentiable(lambda ctx: None)
    own = getattr(backward, "__code__", None)
    return own is wrapper.__code__ or hasattr(backward, "__wrapped__")


def _forward_line(crash: Crash, name: str) -> Line | None:
    plain = _plain(name)
    for node in _nodes(crash):
        if _plain(_LAST_BACKWARD.sub("", node.name())) == plain:
            line = line_of_node(crash.journal, node)
            if line is not None:
                return line
    return _recorded_line(crash, plain)


def _nodes(crash: Crash) -> Iterator[Node]:
    """The nodes that the failing call can reach, the forward part of the graph included."""
    yield from crash.engine_nodes()


def _recorded_line(crash: Crash, plain: str) -> Line | None:
    """Where the graph no longer shows it: the last recorded operation of that name."""
    for operation in reversed(crash.journal.operations.entries):
        known = _plain(operation.name)
        if known and operation.requires_grad and (known == plain or _is_family(known, plain)):
            return line_of_operation(crash.journal, operation)
    return None


def _is_family(recorded: str, plain: str) -> bool:
    """`scaled_dot_product_attention` for its kernels, `grid_sample` for `grid_sampler_2d`."""
    both_fused = recorded.startswith(_FUSED) and plain.startswith(_FUSED)
    return both_fused or (len(recorded) > 4 and plain.startswith(recorded))


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("", name.rpartition("::")[2].lower())
