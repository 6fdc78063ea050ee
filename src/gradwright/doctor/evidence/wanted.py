"""Which tensors the user means to train: those of the optimizer that belongs to a backward."""

import ast
from collections.abc import Iterator

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.journal.operations import storage_of
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
        if isinstance(tensor, torch.Tensor)
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
            if isinstance(value, torch.optim.Optimizer):
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
        value = vars(value).get(part) if hasattr(value, "__dict__") else None
    return value


def _in_sight(crash: Crash) -> Iterator[torch.optim.Optimizer]:
    """Optimizers in the variables of all functions on the stack, and in their attributes."""
    seen: set[int] = set()
    for frame in reversed(crash.frames):
        values = list(frame.frame.f_locals.values())
        if frame.user:
            values += list(frame.frame.f_globals.values())
        for value in list(values):
            inner = vars(value) if _is_plain(value) else {}
            values += [item for item in inner.values() if _is_optimizer(item)]
        for value in values:
            if _is_optimizer(value) and id(value) not in seen:
                seen.add(id(value))
                assert isinstance(value, torch.optim.Optimizer)
                yield value


def _is_optimizer(value: object) -> bool:
    return issubclass(type(value), torch.optim.Optimizer)


def _is_plain(value: object) -> bool:
    """Whether a look into `__dict__` is cheap and runs none of the user's code."""
    return not isinstance(value, type) and type(getattr(value, "__dict__", None)) is dict
