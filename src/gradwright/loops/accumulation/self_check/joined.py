"""One batch made of several."""

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from gradwright.loops.errors import NestedError
from gradwright.loops.nested import map_tensors, outline, tensors_of

Batch = TypeVar("Batch")

_SAME_FOR_ALL = {"NoneType", "str", "bool", "dtype", "device"}  # what may lie among the tensors


def joined(batches: Sequence[Batch]) -> Batch | None:
    """The tensors of several batches, one after the other along their first dimension.

    None where that is not possible: structures or shapes differ, a tensor has no dimension, or
    there are numbers, of which nobody knows whether to add them.
    """
    try:
        parts = [tensors_of(batch) for batch in batches]
        if len({tuple(outline(batch).items()) for batch in batches}) > 1:
            return None
        return map_tensors(_checked(batches[0]), lambda name, _: _joined([p[name] for p in parts]))
    except (NestedError, _NoWay):
        return None


class _NoWay(Exception):
    """These cannot be joined."""


def _checked(batch: Batch) -> Batch:
    kinds = outline(batch)
    leaves = {kind for name, kind in kinds.items() if not _has_parts(name, kinds)}
    if not leaves <= {"Tensor", *_SAME_FOR_ALL}:
        raise _NoWay
    return batch


def _has_parts(name: str, among: dict[str, str]) -> bool:
    return any(other.startswith((name + ".", name + "[")) for other in among)


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    shapes = {tensor.shape[1:] for tensor in tensors}
    if any(tensor.dim() == 0 for tensor in tensors) or len(shapes) > 1:
        raise _NoWay
    return torch.cat(list(tensors))
