"""A collection that holds tensors of this step and of steps gone by."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.holders import Holder
from gradwright.doctor.evidence.plain import items_of
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.second_backward import second_backward
from gradwright.doctor.evidence.storing import is_shortened
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a

_MOST = 100_000  # items looked at


@dataclass(frozen=True, slots=True)
class Collected:
    """The collection, and how much of it is old."""

    reuse: Reuse
    holder: Holder
    name: str
    old: int
    total: int
    added: Site | None  # the line that made the old tensor
    read: Site | None  # the line that reads the collection


def find_collected(crash: Crash) -> Collected | None:
    """The facts, if the tensor that was used again lies in such a collection."""
    facts = crash.once(second_backward)
    if facts is None:
        return None
    reuse, origin = facts
    age = reuse.freed_by.node
    for holder in origin.holders:
        if holder.kind != "item" or isinstance(holder.container, tuple):
            continue
        if is_shortened(holder):
            continue
        numbers = [t.grad_fn._sequence_nr() for t in tensors_in(holder.container) if t.grad_fn]
        old = sum(number < age for number in numbers)
        if old and old < len(numbers) and _reads_new(holder.container, reuse):
            name = holder.container_path
            return Collected(reuse, holder, name, old, len(numbers), origin.built, origin.reused)
    return None


def _reads_new(container: object, reuse: Reuse) -> bool:
    """Whether tensors that this step put in are in its loss: else it is a memory, not a list."""
    nodes = set(reuse.order)
    return any(
        tensor.grad_fn in nodes and tensor.grad_fn._sequence_nr() >= reuse.freed_by.node
        for tensor in tensors_in(container)
        if tensor.grad_fn is not None
    )


def tensors_in(container: object) -> Iterator[torch.Tensor]:
    """The tensors of a collection, one level of nesting deep."""
    for _, value in items_of(container, _MOST):
        if is_a(value, torch.Tensor):
            yield value
        elif is_a(value, list, tuple):
            yield from (item for _, item in items_of(value, _MOST) if is_a(item, torch.Tensor))
