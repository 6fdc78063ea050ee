"""The optimizers that a program has used or holds."""

from itertools import islice

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.plain import items_of, own_dict
from gradwright.doctor.kinds import is_a


def optimizers_in_sight(crash: Crash) -> list[torch.optim.Optimizer]:
    """Those that have stepped, and those among the user's variables, each once."""
    found: dict[int, torch.optim.Optimizer] = {}
    for step in crash.journal.optimizers.remembered():
        optimizer = step.optimizer()
        if optimizer is not None:
            found[id(optimizer)] = optimizer
    for item in crash.objects:
        if is_a(item, torch.optim.Optimizer):
            found[id(item)] = item
    for frame in crash.user_frames:
        for value in list(frame.frame.f_locals.values()):
            for item in _one_level(value):
                if is_a(item, torch.optim.Optimizer):
                    found[id(item)] = item
    return list(found.values())


def _one_level(value: object) -> list[object]:
    if is_a(value, list, tuple, dict):
        return [value, *(item for _, item in items_of(value, 100))]
    return [value] if is_a(value, type) else [value, *islice(own_dict(value).values(), 200)]
