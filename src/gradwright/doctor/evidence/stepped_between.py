"""A step between two backwards over one graph that both train the stepped parameter."""

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.optimizers import optimizers_in_sight
from gradwright.doctor.evidence.writes import SavedChange
from gradwright.doctor.journal.operations import storage_of


def is_stepped_between_tasks(crash: Crash, facts: SavedChange) -> bool:
    """Whether another optimizer, or the only one, has the parameter for the later loss.

    A generator's loss is not such a case: its own optimizer leaves the discriminator alone.
    """
    if not facts.by_step or facts.earlier is None or not facts.earlier.retain_graph:
        return False
    known = optimizers_in_sight(crash)
    owners = [one for one in known if _owns(one, facts.modified.storage)]
    return not facts.carried and (len(owners) > 1 or len(known) == 1)


def _owns(optimizer: torch.optim.Optimizer, storage: int) -> bool:
    owned = (p for group in optimizer.param_groups for p in group["params"])
    return any(storage_of(parameter) == storage for parameter in owned)
