"""What kind of object something is, without asking the object.

`isinstance` also reads the object's `__class__`, which a program may have made a property: that
runs its code, may raise, and lets a mock pass for a tensor.
"""

from typing import TypeGuard, TypeVar

Kind = TypeVar("Kind")


def is_a(value: object, *kinds: type[Kind]) -> TypeGuard[Kind]:
    """Whether `value` really has one of these types, or a type derived from one."""
    return issubclass(type(value), kinds)
