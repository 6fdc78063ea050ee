"""A step between two backwards over one graph that both train the stepped parameter."""

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.writes import SavedChange
from gradwright.doctor.journal.operations import storage_of


def is_stepped_between_tasks(crash: Crash, facts: SavedChange) -> bool:
    """Whether another optimizer, or the only one, has the parameter for the later loss.

    A generator's loss is not such a case: its own optimizer leaves the discriminator alone.
    """
    if not facts.by_step or facts.earlier is None or not facts.earlier.retain_graph:
        return False
    known = _optimizers_in_sight(crash)
    owners = [one for one in known if _owns(one, facts.modified.storage)]
    return not facts.carried and (len(owners) > 1 or len(known) == 1)


def _optimizers_in_sight(crash: Crash) -> list[torch.optim.Optimizer]:
    """Optimizers among the variables and attributes of the running functions, each once."""
    found: dict[int, torch.optim.Optimizer] = {}
    for frame in crash.user_frames:
        for value in {**frame.frame.f_globals, **frame.frame.f_locals}.values():
            inside = vars(value).values() if hasattr(value, "__dict__") else ()
            for item in (value, *inside):
                if isinstance(item, torch.optim.Optimizer):
                    found[id(item)] = item
    return list(found.values())


def _owns(optimizer: torch.optim.Optimizer, storage: int) -> bool:
    owned = (p for group in optimizer.param_groups for p in group["params"])
    return any(storage_of(parameter) == storage for parameter in owned)
