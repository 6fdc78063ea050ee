"""Walks over the tensors of a nested value, each with its name: `state.layers[0].keys`."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeVar

import torch
from torch import Tensor

from gradwright.loops.errors import NestedError
from gradwright.loops.nested.branch import branch_of

Value = TypeVar("Value")

Visit = Callable[[str, Any], object]
"""From a leaf's name and the leaf to what takes its place."""

_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, slice, range, type, Enum),
    *(torch.dtype, torch.device, torch.layout, torch.Size, torch.Generator, torch.Stream),
)


def map_tensors(
    value: Value, visit: Visit, name: str = "value", kinds: tuple[type, ...] = (Tensor,)
) -> Value:
    """The same value with `visit(name, tensor)` in the place of each tensor; no part is changed.

    Args:
        value: Tensors in tuples, lists, dicts, dataclasses, caches, packed sequences, or what was
            registered, nested at will. None, numbers, strings and the like stay.
        visit: Called once for each tensor, in order.
        name: What the value is called in the tensors' names.
        kinds: The types that count as tensors.

    Raises:
        NestedError: There is an object of a type that is not known; the error has its name.

    Example:
        >>> map_tensors((torch.ones(2), None, 3), lambda name, tensor: tensor + 1)
        (tensor([2., 2.]), None, 3)
    """
    new: Value = _mapped(value, visit, name, kinds)  # type: ignore[assignment]
    return new


def tensors_of(value: object, name: str = "value") -> dict[str, Tensor]:
    """The tensors of a nested value by their names."""
    found: dict[str, Tensor] = {}

    def note(path: str, tensor: Tensor) -> Tensor:
        found[path] = tensor
        return tensor

    map_tensors(value, note, name)
    return found


def outline(value: object, name: str = "value") -> dict[str, str]:
    """The structure of a nested value: each leaf's name, and the word for its type."""
    return dict(_outline(value, name))


def _mapped(value: object, visit: Visit, name: str, kinds: tuple[type, ...]) -> object:
    if isinstance(value, kinds):
        return visit(name, value)
    if isinstance(value, _PLAIN):
        return value
    branch = branch_of(value)
    if branch is None:
        raise NestedError(_unknown(value, name))
    parts = branch.parts.items()
    return branch.rebuild([_mapped(part, visit, name + inside, kinds) for inside, part in parts])


def _outline(value: object, name: str) -> Iterator[tuple[str, str]]:
    branch = None if isinstance(value, (Tensor, *_PLAIN)) else branch_of(value)
    if branch is None:
        yield name, "Tensor" if isinstance(value, Tensor) else type(value).__name__
        return
    yield name, type(value).__name__
    for inside, part in branch.parts.items():
        yield from _outline(part, name + inside)


def _unknown(value: object, name: str) -> str:
    kind = type(value)
    return (
        f"`{name}` is a {kind.__module__}.{kind.__qualname__}: its tensors cannot be found. Make "
        "it a tuple, a dict or a dataclass, or say how to take it apart with "
        "gradwright.loops.register."
    )
