"""The optimizers that a program has used or holds."""

import torch

from gradwright.doctor.crash import Crash


def optimizers_in_sight(crash: Crash) -> list[torch.optim.Optimizer]:
    """Those that have stepped, and those among the user's variables, each once."""
    found: dict[int, torch.optim.Optimizer] = {}
    for step in crash.journal.optimizers.remembered():
        optimizer = step.optimizer()
        if optimizer is not None:
            found[id(optimizer)] = optimizer
    for item in crash.objects:
        if isinstance(item, torch.optim.Optimizer):
            found[id(item)] = item
    for frame in crash.user_frames:
        for value in list(frame.frame.f_locals.values()):
            for item in _one_level(value):
                if isinstance(item, torch.optim.Optimizer):
                    found[id(item)] = item
    return list(found.values())


def _one_level(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [value, *value[:100]]
    if isinstance(value, dict):
        return [value, *list(value.values())[:100]]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return [value, *list(vars(value).values())[:200]]
    return [value]
