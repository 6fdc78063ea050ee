"""The objects whose class keeps a state."""

from types import ModuleType

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, around_site
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.where import class_at


def attribute_of(owner: object, name: str) -> object:
    """The value of an attribute, a module's buffers and parts included; runs no user code."""
    own = own_dict(owner)
    if name in own or not is_a(owner, torch.nn.Module):
        return own.get(name)
    kept: list[dict[str, object]] = [owner._buffers, owner._parameters, owner._modules]  # type: ignore[list-item]
    return next((each[name] for each in kept if name in each), None)


def owners_of(crash: Crash, origin: Origin) -> list[tuple[str, object]]:
    """Objects in sight whose class is the one around the line that reads the state."""
    found = around_site(origin.reused or origin.built)
    site = origin.reused or origin.built
    if found is None or site is None:
        return []
    class_node = class_at(found[0], site.line)
    if class_node is None:
        return []
    result: list[tuple[str, object]] = []
    for root, module in modules_in_sight(crash):
        for name, child in module.named_modules():
            if type(child).__name__ == class_node.name:
                result.append((".".join(part for part in (root, name) if part), child))
    for frame in reversed(crash.user_frames):
        for name, value in frame.frame.f_locals.items():
            if type(value).__name__ == class_node.name and name != "self":
                result.append((name, value))
            elif not is_a(value, torch.nn.Module, type, ModuleType):
                result += [
                    (f"{name}.{key}", part)
                    for key, part in own_dict(value).items()
                    if type(part).__name__ == class_node.name and key.isidentifier()
                ]
    return result
