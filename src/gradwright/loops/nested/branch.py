"""One level of a nested value: what lies inside it, and how to make it again from other parts."""

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from torch.nn.utils.rnn import PackedSequence

from gradwright.loops.nested.cache import is_cache_part
from gradwright.loops.nested.registered import registered_for


class Branch(NamedTuple):
    """The parts of a value by what is appended to its name, and the way back."""

    parts: dict[str, object]
    rebuild: Callable[[Sequence[object]], object]


def branch_of(value: object) -> Branch | None:
    """The parts of `value`, or None where nobody knows how to take it apart."""
    known = registered_for(type(value))
    if known is not None:
        inside = known.parts(value)
        return Branch({".parts": inside}, lambda parts: known.rebuild(value, parts[0]))
    match value:
        case PackedSequence():
            return Branch({".data": value.data}, lambda parts: _packed(value, parts[0]))
        case tuple() if hasattr(value, "_fields"):
            names = [f".{name}" for name in value._fields]
            return Branch(dict(zip(names, value, strict=True)), type(value)._make)  # type: ignore[attr-defined]
        case tuple():
            return Branch(_numbered(value), type(value))
        case list() | deque():
            return Branch(_numbered(value), lambda parts: _refilled(value, parts))
        case dict():
            items = {f"[{key!r}]": part for key, part in value.items()}
            return Branch(items, lambda parts: _with_values(value, parts))
    if is_dataclass(value):
        return _of_attributes(value, [field.name for field in fields(value)])
    if is_cache_part(value):
        return _of_attributes(value, list(vars(value)))
    return None


def _packed(packed: PackedSequence, data: Any) -> PackedSequence:
    """On the device of its data, the order of its rows too."""
    order, back = packed.sorted_indices, packed.unsorted_indices
    moved = [None if indices is None else indices.to(data.device) for indices in (order, back)]
    return PackedSequence(data, packed.batch_sizes, *moved)


def _numbered(value: Sequence[object] | deque[object]) -> dict[str, object]:
    return {f"[{index}]": part for index, part in enumerate(value)}


def _refilled(value: Any, parts: Sequence[object]) -> object:
    new = copy.copy(value)
    new.clear()
    new.extend(parts)
    return new


def _with_values(value: dict[object, object], parts: Sequence[object]) -> object:
    new = copy.copy(value)
    for key, part in zip(value, parts, strict=True):
        new[key] = part
    return new


def _of_attributes(value: object, names: Sequence[str]) -> Branch:
    """A copy without `__init__`: it may have other arguments, or do work."""

    def rebuild(parts: Sequence[object]) -> object:
        new = copy.copy(value)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(new, name, part)  # frozen ones too
        return new

    return Branch({f".{name}": getattr(value, name) for name in names}, rebuild)
