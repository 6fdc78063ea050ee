"""An in-place operation that torch refused at once: on a leaf, a view of one, or a shared view."""

import ast
from dataclasses import dataclass
from typing import Literal

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.targets import Target, target_at
from gradwright.doctor.evidence.values import tensor_in_frame, value_in_frame
from gradwright.doctor.kinds import is_a

Kind = Literal["leaf", "view of a leaf", "one of several views", "view without a graph"]

_SIGNS: tuple[tuple[str, Kind], ...] = (
    ("a view of a leaf Variable that requires grad is being used", "view of a leaf"),
    ("a leaf Variable that requires grad is being used", "leaf"),
    ("function that returns multiple views", "one of several views"),
    ("A view was created in no_grad mode", "view without a graph"),
)


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """The statement that raised, and the tensor it wanted to change."""

    kind: Kind
    frame: CrashFrame
    target: Target | None
    tensor: torch.Tensor | None


def find_refused_write(crash: Crash) -> RefusedWrite | None:
    """What the user's innermost line wanted to change in place."""
    kind = next((kind for sign, kind in _SIGNS if sign in crash.message), None)
    frame = crash.raised_at
    if kind is None or frame is None:
        return None
    target = target_at(frame.site, frame.instruction)
    tensor = tensor_in_frame(frame, target.written) if target is not None else None
    return RefusedWrite(kind, frame, target, tensor)


def is_frozen_write(frame: CrashFrame, target: Target) -> bool:
    """Whether a statement writes into a leaf that requires grad, or a view of one, or a `.grad`."""
    if isinstance(target.written, ast.Attribute) and target.written.attr == "grad":
        return True
    tensor = tensor_in_frame(frame, target.written)
    if tensor is None:
        return False
    base = tensor._base if tensor._base is not None else tensor
    return base.is_leaf and base.requires_grad


def writes_a_result(refused: RefusedWrite) -> bool:
    """Whether the value written has a graph of its own, which `no_grad` would cut."""
    target = refused.target
    if target is None:
        return False
    operation = target.operation
    values: list[ast.expr] = []
    if isinstance(operation, ast.Assign | ast.AugAssign):
        values = [operation.value]
    elif isinstance(operation, ast.Call):
        values = [*operation.args, *(keyword.value for keyword in operation.keywords)]
    nodes = [node for value in values for node in ast.walk(value) if isinstance(node, ast.expr)]
    return any(_has_graph(refused, node) for node in nodes)


def _has_graph(refused: RefusedWrite, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return _module_called(refused.frame, node)
    tensor = tensor_in_frame(refused.frame, node)
    mine = refused.tensor
    return tensor is not None and tensor.grad_fn is not None and tensor is not mine


def _module_called(frame: CrashFrame, call: ast.Call) -> bool:
    value = value_in_frame(frame, call.func)
    return is_a(value, torch.nn.Module) and any(p.requires_grad for p in value.parameters())
