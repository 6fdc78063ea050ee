"""Values of the user's expressions in a stack frame, without running any of the user's code."""

import ast

import torch

from gradwright.doctor.crash import CrashFrame

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
    return value if isinstance(value, torch.Tensor) else None


def _attribute(owner: object, name: str) -> object:
    if isinstance(owner, torch.Tensor):
        return getattr(owner, name) if name in _OF_TENSOR else MISSING
    if isinstance(owner, torch.nn.Module):
        for table in (owner._parameters, owner._buffers, owner._modules):
            if name in table:
                return table[name]
    return vars(owner).get(name, MISSING) if hasattr(owner, "__dict__") else MISSING


def _item(frame: CrashFrame, expression: ast.Subscript) -> object:
    owner = value_in_frame(frame, expression.value)
    index = expression.slice
    key = index.value if isinstance(index, ast.Constant) else value_in_frame(frame, index)
    if isinstance(owner, torch.nn.Sequential | torch.nn.ModuleList) and isinstance(key, int):
        return owner._modules.get(str(key), MISSING)
    if type(owner) not in (list, tuple, dict) or not isinstance(key, int | str):
        return MISSING
    try:
        return owner[key]  # type: ignore[index]
    except (LookupError, TypeError):
        return MISSING
