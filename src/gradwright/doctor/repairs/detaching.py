"""The line of code that detaches a state, whatever type the state has."""

import torch

from gradwright.doctor.kinds import is_a


def detaching_line(name: str, value: object, optional: bool) -> str | None:
    """`state = state.detach()`, as its type wants it."""
    if is_a(value, torch.Tensor):
        line = f"{name} = {name}.detach()"
    elif is_a(value, tuple) and not hasattr(value, "_fields") and _flat(value):
        line = f"{name} = tuple(part.detach() for part in {name})"
    elif is_a(value, list) and _flat(value):
        line = f"{name} = [part.detach() for part in {name}]"
    elif is_a(value, dict) and _flat(list(value.values())):
        line = f"{name} = {{key: part.detach() for key, part in {name}.items()}}"
    else:
        return None
    if optional:
        target, _, expression = line.partition(" = ")
        line = f"{target} = {expression} if {name} is not None else None"
    return line


def _flat(items: list[object] | tuple[object, ...]) -> bool:
    return bool(items) and all(is_a(item, torch.Tensor) for item in items)
