"""Fixes that act when a step is over: forget a state, or keep its value only."""

import ast

import torch

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.origin import Origin, statement_of_site
from gradwright.doctor.evidence.owners import owners_of
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.attributes import step_statement
from gradwright.doctor.repairs.detaching import detaching_line
from gradwright.doctor.syntax.caches import reset_methods
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import class_at

Edits = tuple[Edit, ...]


def reset_owners(crash: Crash, origin: Origin) -> Edits | None:
    """Call the method that the class has for forgetting, for every object that keeps a state."""
    found = statement_of_site(origin.reused or origin.built)
    site = origin.reused or origin.built
    class_node = class_at(found[0], site.line) if found is not None and site is not None else None
    if class_node is None:
        return None
    methods = reset_methods(class_node, origin.name.rpartition(".")[2])
    return _for_each_owner(crash, origin, "{}." + methods[0] + "()") if methods else None


def detached_after_step(crash: Crash, origin: Origin) -> Edits | None:
    """Detach the state of every object that keeps one."""
    attribute = origin.name.rpartition(".")[2]
    owners = owners_of(crash, origin)
    if "." not in origin.name or not owners:
        return _local_after_step(crash, origin)
    value = getattr(owners[0][1], attribute, None)
    line = detaching_line("{}." + attribute, value, optional=False)
    return _for_each_owner(crash, origin, line) if line is not None else None


def _local_after_step(crash: Crash, origin: Origin) -> Edits | None:
    frame = _function_of(crash, origin.built)
    place = backward_statement(crash, frame) if frame is not None else None
    if frame is None or place is None or not origin.name:
        return None
    line = detaching_line(origin.name, frame.frame.f_locals.get(origin.name), optional=False)
    return insert_after(*place, [line]) if line is not None else None


def _for_each_owner(crash: Crash, origin: Origin, action: str) -> Edits | None:
    """Run `action` for every object that keeps such a state, after the step."""
    for frame in reversed(crash.user_frames):
        place = step_statement(crash, frame.site) or backward_statement(crash, frame)
        if place is None:
            continue
        for root, value in frame.frame.f_locals.items():
            lines = _owner_lines(crash, origin, root, value, action)
            if lines:
                return insert_after(*place, lines)
    return None


def _owner_lines(
    crash: Crash, origin: Origin, root: str, value: object, action: str
) -> list[str] | None:
    owners = [owner for _, owner in owners_of(crash, origin)]
    if any(value is owner for owner in owners):
        return [action.replace("{}", root)]
    parts = [path for path, _ in owners_of(crash, origin) if path.rpartition(".")[0] == root]
    if parts and not is_a(value, torch.nn.Module):
        return [action.replace("{}", path) for path in dict.fromkeys(parts)]
    if not is_a(value, torch.nn.Module):
        return None
    inside = [child for child in value.modules() if any(child is owner for owner in owners)]
    if not inside:
        return None
    attribute = origin.name.rpartition(".")[2]
    names = [name for name, child in value.named_modules() if child is inside[0]]
    if len(inside) == 1 and names and not any(part.isdigit() for part in names[0].split(".")):
        return [action.replace("{}", f"{root}.{names[0]}")]
    return [
        f"for part in {root}.modules():",
        f'    if hasattr(part, "{attribute}"):',
        "        " + action.replace("{}", "part"),
    ]


def _function_of(crash: Crash, site: Site | None) -> CrashFrame | None:
    frames = (frame for frame in crash.user_frames if site and frame.code is site.code)
    return next(frames, None)


def backward_statement(crash: Crash, frame: CrashFrame) -> tuple[SourceTree, ast.stmt] | None:
    """The statement of a function that led to the failing backward."""
    return statement_of_site(frame.site)
