"""Which tensors the user means to train: those of the optimizer that belongs to a backward."""

import ast
from collections.abc import Iterator

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.journal.operations import storage_of
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import function_at

_USES = ("step", "zero_grad")


def wanted_storages(crash: Crash) -> frozenset[int]:
    """The memory of the tensors in the optimizer nearest to the backward."""
    return frozenset(storage_of(tensor) for tensor in wanted_tensors(crash)) - {0}


def wanted_tensors(crash: Crash) -> list[torch.Tensor]:
    """The tensors of the optimizer used around the backward, else of all optimizers in sight."""
    optimizer = _nearest(crash)
    optimizers = [optimizer] if optimizer is not None else list(_in_sight(crash))
    return [
        tensor
        for one in optimizers
        for group in one.param_groups
        for tensor in group["params"]
        if is_a(tensor, torch.Tensor)
    ]


def _nearest(crash: Crash) -> torch.optim.Optimizer | None:
    """The optimizer that steps, or is zeroed, next to the line that asked for the backward."""
    for frame in reversed(crash.user_frames):
        tree = tree_of(frame.file)
        if tree is None:
            continue
        uses = sorted(_uses(tree, frame), key=lambda use: _distance(use, frame.line))
        for use in uses:
            assert isinstance(use.func, ast.Attribute)
            value = _value(frame, dotted(use.func.value))
            if is_a(value, torch.optim.Optimizer):
                return value
    return None


def _uses(tree: SourceTree, frame: CrashFrame) -> list[ast.Call]:
    scope: ast.AST = function_at(tree, frame.line) or tree.root
    return [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _USES
    ]


def _distance(use: ast.Call, line: int) -> tuple[int, int]:
    """A step after the line comes first, then the nearest."""
    assert isinstance(use.func, ast.Attribute)
    after = use.func.attr == "step" and use.lineno >= line
    return (0 if after else 1, abs(use.lineno - line))


def _value(frame: CrashFrame, name: str | None) -> object:
    if name is None:
        return None
    first, *rest = name.split(".")
    value = frame.frame.f_locals.get(first, frame.frame.f_globals.get(first))
    for part in rest:
        value = own_dict(value).get(part)
    return value


def _in_sight(crash: Crash) -> Iterator[torch.optim.Optimizer]:
    """Optimizers in the variables of all functions on the stack, and in their attributes."""
    seen: set[int] = set()
    for frame in reversed(crash.frames):
        values = list(frame.frame.f_locals.values())
        if frame.user:
            values += list(frame.frame.f_globals.values())
        for value in list(values):
            inner = {} if is_a(value, type) else own_dict(value)
            values += [one for one in inner.values() if is_a(one, torch.optim.Optimizer)]
        for value in values:
            if is_a(value, torch.optim.Optimizer) and id(value) not in seen:
                seen.add(id(value))
                yield value
