"""What to call a tensor: the user's variable, a parameter's name."""

from collections.abc import Iterable

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.plain import attributes_of, items_of, said_key
from gradwright.doctor.evidence.trained import names_in_sight
from gradwright.doctor.kinds import is_a


def name_of(crash: Crash, tensor: torch.Tensor) -> str:
    """The user's variable for a tensor in backticks, empty if no function on the stack has one."""
    for frame in reversed(crash.user_frames):
        for name, value in frame.frame.f_locals.items():
            if value is tensor:
                return f"`{name}`"
    parameter = crash.once(names_in_sight).get(id(tensor))
    return f"`{parameter}`" if parameter else ""


def parameter_names(crash: Crash, tensors: Iterable[torch.Tensor]) -> list[str]:
    """Names of tensors as their modules or dicts in sight call them; unknown ones are left out."""
    known = crash.once(names_in_sight)
    keys = crash.once(_keys_in_sight)
    found = (known.get(id(tensor)) or keys.get(id(tensor)) for tensor in tensors)
    return list(dict.fromkeys(name for name in found if name))


def said_shape(tensor: torch.Tensor) -> str:
    """`[128, 3]`."""
    return str(list(tensor.shape))


def said_names(names: list[str], most: int = 3) -> str:
    """`a`, `b` and 4 more."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _keys_in_sight(crash: Crash) -> dict[int, str]:
    """`id(tensor)` to `variable['key']` for tensors in dicts and lists of the user's functions."""
    found: dict[int, str] = {}
    for frame in reversed(crash.user_frames):
        variables = dict(frame.frame.f_locals)
        owner = variables.get("self")
        if owner is not None:
            variables |= {f"self.{key}": value for key, value in attributes_of(owner)}
        for name, value in variables.items():
            if is_a(value, torch.Tensor):
                found.setdefault(id(value), name)
            elif is_a(value, dict, list, tuple):
                for key, item in items_of(value, 1000):
                    if is_a(item, torch.Tensor):
                        found.setdefault(id(item), f"{name}[{said_key(key)}]"[:80])
    return found
