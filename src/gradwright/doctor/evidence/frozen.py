"""Frozen tensors that a loss was computed from, and the lines that froze them."""

from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.severed import find_severance
from gradwright.doctor.evidence.trained import modules_in_sight, names_in_sight
from gradwright.doctor.evidence.wanted import wanted_storages
from gradwright.doctor.journal import Operation
from gradwright.doctor.journal.operations import Freeze, storage_of


@dataclass(frozen=True, slots=True)
class Feed:
    """A frozen tensor in the loss."""

    tensor: torch.Tensor
    name: str  # dotted, empty if no module in sight has it
    freeze: Freeze | None  # the last time it was frozen
    order: int  # of that freeze among all
    wanted: bool  # an optimizer has it: the user means to train it


def frozen_feeds(crash: Crash) -> tuple[Feed, ...]:
    """The frozen parameters that feed the loss, in the order they were frozen."""
    severance = crash.once(find_severance)
    if severance is None or severance.made is None:
        return ()
    used = _storages(crash, severance.chain)
    names, wanted = crash.once(names_in_sight), crash.once(wanted_storages)
    feeds: dict[int, Feed] = {}
    for tensor in _parameters_in_sight(crash):
        if not tensor.requires_grad and storage_of(tensor) in used:
            feeds[id(tensor)] = _feed(tensor, None, -1, names, wanted)
    for order, freeze in enumerate(crash.journal.operations.freezes):
        frozen = freeze.tensor()
        if frozen is None or not frozen.is_leaf or frozen.requires_grad:
            continue
        known = id(frozen) in feeds or isinstance(frozen, torch.nn.Parameter)
        if known and not freeze.value and storage_of(frozen) in used:
            feeds[id(frozen)] = _feed(frozen, freeze, order, names, wanted)
    return tuple(sorted(feeds.values(), key=lambda feed: feed.order))


def _storages(crash: Crash, chain: tuple[Operation, ...]) -> set[int]:
    """The memory of everything the loss was computed from, the recorded inputs included."""
    found: set[int] = set()
    operations = crash.journal.operations
    for operation in chain:
        found.add(operation.storage)
        for index in operation.parents:
            parent = operations[index]
            if parent is not None:
                found.add(parent.storage)
    return found - {0}


def _parameters_in_sight(crash: Crash) -> list[torch.Tensor]:
    return [parameter for _, module in modules_in_sight(crash) for parameter in module.parameters()]


def _feed(
    tensor: torch.Tensor,
    freeze: Freeze | None,
    order: int,
    names: dict[int, str],
    wanted: frozenset[int],
) -> Feed:
    return Feed(tensor, names.get(id(tensor), ""), freeze, order, storage_of(tensor) in wanted)
