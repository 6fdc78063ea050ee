"""Reading the program's own objects without running its methods.

A subclass of `dict` may count its readers, an attribute may be worked out by `__getattr__`, a key
may raise in `__repr__`: an explanation must not wake any of them.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import MemberDescriptorType

_SEQUENCES = (list, tuple, deque, set, frozenset)
_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


def items_of(value: object, most: int) -> list[tuple[object, object]]:
    """Keys and values of a dict, or indices and items of a list, tuple, deque or set."""
    if isinstance(value, dict):
        return list(islice(dict.items(value), most))
    for kind in _SEQUENCES:
        if isinstance(value, kind):
            items: Iterator[object] = kind.__iter__(value)  # type: ignore[arg-type]
            return list(enumerate(islice(items, most)))
    return []


def attributes_of(value: object) -> list[tuple[str, object]]:
    """The attributes an object has itself, in its `__dict__` and in slots."""
    try:
        own = list(object.__getattribute__(value, "__dict__").items())
    except AttributeError:
        own = []
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, MemberDescriptorType) and not name.startswith("__"):
                try:
                    own.append((name, slot.__get__(value)))
                except AttributeError:  # not set
                    continue
    return own


def said_key(key: object) -> str:
    """A key as the program would write it; an ellipsis where that would run its code."""
    return repr(key)[:80] if type(key) in _PLAIN_KEYS else "…"
