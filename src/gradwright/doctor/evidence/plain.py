"""Reading the program's own objects without running its methods.

A subclass of `dict` may count its readers, an attribute may be worked out by `__getattr__`, a key
may raise in `__repr__`: an explanation must not wake any of them.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from types import GetSetDescriptorType, MemberDescriptorType

from gradwright.doctor.kinds import is_a

_SEQUENCES = (list, tuple, deque, set, frozenset)
_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


def items_of(value: object, most: int) -> list[tuple[object, object]]:
    """Keys and values of a dict, or indices and items of a list, tuple, deque or set."""
    if is_a(value, dict):
        return list(islice(dict.items(value), most))
    for kind in _SEQUENCES:
        if is_a(value, kind):
            items: Iterator[object] = kind.__iter__(value)  # type: ignore[arg-type]
            return list(enumerate(islice(items, most)))
    return []


def attributes_of(value: object) -> list[tuple[str, object]]:
    """The attributes an object has itself, in its `__dict__` and in slots."""
    own = list(own_dict(value).items())
    for kind in type(value).__mro__:
        for name, slot in vars(kind).items():
            if is_a(slot, MemberDescriptorType) and not name.startswith("__"):
                try:
                    own.append((name, slot.__get__(value)))
                except AttributeError:  # not set
                    continue
    return own


def own_dict(value: object) -> Mapping[str, object]:
    """The `__dict__` that Python gave the object, not one that its class works out; else empty."""
    for kind in type(value).__mro__:
        slot = vars(kind).get("__dict__")
        if type(slot) in (GetSetDescriptorType, MemberDescriptorType):
            return slot.__get__(value)  # type: ignore[union-attr, no-any-return]
    return {}


def said_key(key: object) -> str:
    """A key as the program would write it; an ellipsis where that would run its code."""
    return repr(key)[:80] if type(key) in _PLAIN_KEYS else "…"
