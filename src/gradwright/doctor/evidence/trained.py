"""Which parameters an old graph would have trained."""

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.graph import leaves, names_of_tensors


def modules_in_sight(crash: Crash) -> list[tuple[str, torch.nn.Module]]:
    """The user's variables that are modules, innermost function first; `self` loses its name."""
    found: dict[int, tuple[str, torch.nn.Module]] = {}
    for frame in reversed(crash.user_frames):
        for name, value in {**frame.frame.f_globals, **frame.frame.f_locals}.items():
            if isinstance(value, torch.nn.Module):
                found.setdefault(id(value), (name, value))
            elif name == "self" and hasattr(value, "__dict__"):
                for key, item in vars(value).items():
                    if isinstance(item, torch.nn.Module):
                        found.setdefault(id(item), (f"self.{key}", item))
    for item in crash.objects:
        if isinstance(item, torch.nn.Module):
            found.setdefault(id(item), ("model", item))
    for frame in reversed(crash.frames):
        if not frame.user:  # a trainer's own variables: the only way to a model made in passing
            for value in list(frame.frame.f_locals.values()):
                if isinstance(value, torch.nn.Module):
                    found.setdefault(id(value), ("", value))
    named = [(name, module) for name, module in found.values() if name != "self"]
    owners = [("", module) for name, module in found.values() if name == "self"]
    return [*named, *owners]


def names_in_sight(crash: Crash) -> dict[int, str]:
    """`id(tensor)` to the user's name of every parameter in sight, free ones included."""
    names = names_of_tensors(modules_in_sight(crash))
    for frame in reversed(crash.user_frames):
        for name, value in {**frame.frame.f_globals, **frame.frame.f_locals}.items():
            if isinstance(value, torch.nn.Parameter):
                names.setdefault(id(value), name)
    return names


def trained_by(crash: Crash, reuse: Reuse) -> tuple[str, ...]:
    """Names of the leaves below the node that was freed."""
    names = crash.once(names_in_sight)
    below = {id(leaf) for leaf in leaves([reuse.freed])}
    return tuple(dict.fromkeys(name for leaf, name in names.items() if leaf in below))
