"""Which parameters an old graph would have trained."""

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.kinds import is_a
from gradwright.graph import leaves, names_of_tensors


def modules_in_sight(crash: Crash) -> list[tuple[str, torch.nn.Module]]:
    """The user's variables that are modules, innermost function first; `self` loses its name."""
    found: dict[int, tuple[str, torch.nn.Module]] = {}
    for frame in reversed(crash.user_frames):
        for name, value in {**frame.frame.f_globals, **frame.frame.f_locals}.items():
            if is_a(value, torch.nn.Module):
                found.setdefault(id(value), (name, value))
            elif name == "self":
                for key, item in own_dict(value).items():
                    if is_a(item, torch.nn.Module):
                        found.setdefault(id(item), (f"self.{key}", item))
    for item in crash.objects:
        if is_a(item, torch.nn.Module):
            found.setdefault(id(item), ("model", item))
    for frame in reversed(crash.frames):
        if not frame.user:  # a trainer's own variables: the only way to a model made in passing
            for value in list(frame.frame.f_locals.values()):
                if is_a(value, torch.nn.Module):
                    found.setdefault(id(value), ("", value))
    named = [(name, module) for name, module in found.values() if name != "self"]
    owners = [("", module) for name, module in found.values() if name == "self"]
    return [*named, *owners]


def names_in_sight(crash: Crash) -> dict[int, str]:
    """`id(tensor)` to the user's name of every parameter in sight, free ones included."""
    names = names_of_tensors(modules_in_sight(crash))
    for frame in reversed(crash.user_frames):
        for name, value in {**frame.frame.f_globals, **frame.frame.f_locals}.items():
            if is_a(value, torch.Tensor) and isinstance(value, torch.nn.Parameter):
                names.setdefault(id(value), name)
    return names


def trained_by(crash: Crash, reuse: Reuse) -> tuple[str, ...]:
    """Names of the leaves below the node that was freed."""
    names = crash.once(names_in_sight)
    below = {id(leaf) for leaf in leaves([reuse.freed])}
    return tuple(dict.fromkeys(name for leaf, name in names.items() if leaf in below))
