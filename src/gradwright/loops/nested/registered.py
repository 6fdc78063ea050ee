"""Types of the user's own, told to us with the way into them and back."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Kind = TypeVar("Kind")


class Known(NamedTuple):
    """How to take a value of a type apart, and to make one again from other parts."""

    parts: Callable[[Any], object]
    rebuild: Callable[[Any, Any], object]


_KNOWN: dict[type, Known] = {}


def register(
    kind: type[Kind], parts: Callable[[Kind], object], rebuild: Callable[[Kind, Any], Kind]
) -> None:
    """Teach the loops a type that a state or a batch holds.

    Args:
        kind: The type; a type derived from it is another one.
        parts: From a value to what holds its tensors: a tuple, a dict, nested at will.
        rebuild: From the old value and other parts to a new value; the old one stays as it is.

    Example:
        >>> class Memory:
        ...     def __init__(self, slots): self.slots = slots
        >>> register(Memory, lambda memory: memory.slots, lambda memory, slots: Memory(slots))
    """
    _KNOWN[kind] = Known(parts, rebuild)


def registered_for(kind: type) -> Known | None:
    """What was registered for this type."""
    return _KNOWN.get(kind)
