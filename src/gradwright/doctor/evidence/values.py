"""Values of the user's expressions in a stack frame, without running any of the user's code."""

import ast

import torch

from gradwright.doctor.crash import CrashFrame
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.kinds import is_a

MISSING = object()
_OF_TENSOR = {"data", "grad", "T", "mT"}


def value_in_frame(frame: CrashFrame, expression: ast.expr) -> object:
    """What a name, attribute or constant index meant in the frame; MISSING if unknown."""
    if isinstance(expression, ast.Name):
        known = frame.frame.f_locals
        return known.get(expression.id, frame.frame.f_globals.get(expression.id, MISSING))
    if isinstance(expression, ast.Attribute):
        return _attribute(value_in_frame(frame, expression.value), expression.attr)
    if isinstance(expression, ast.Subscript):
        return _item(frame, expression)
    return MISSING


def tensor_in_frame(frame: CrashFrame, expression: ast.expr) -> torch.Tensor | None:
    """The same, where it is a tensor."""
    value = value_in_frame(frame, expression)
    return value if is_a(value, torch.Tensor) else None


def _attribute(owner: object, name: str) -> object:
    if is_a(owner, torch.Tensor):
        return getattr(owner, name) if name in _OF_TENSOR else MISSING
    if is_a(owner, torch.nn.Module):
        for table in (owner._parameters, owner._buffers, owner._modules):
            if name in table:
                return table[name]
    return own_dict(owner).get(name, MISSING)


def _item(frame: CrashFrame, expression: ast.Subscript) -> object:
    owner = value_in_frame(frame, expression.value)
    index = expression.slice
    key = index.value if isinstance(index, ast.Constant) else value_in_frame(frame, index)
    if is_a(owner, torch.nn.Sequential, torch.nn.ModuleList) and is_a(key, int):
        return owner._modules.get(str(key), MISSING)
    if type(owner) not in (list, tuple, dict) or not is_a(key, int, str):
        return MISSING
    try:
        return owner[key]  # type: ignore[index]
    except (LookupError, TypeError):
        return MISSING
