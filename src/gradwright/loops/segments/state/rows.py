"""Rows of a state: where they lie, and a fresh start for those where a new document begins."""

from typing import Any, TypeVar

import torch
from torch import Tensor

from gradwright.loops.errors import StateError
from gradwright.loops.nested import map_tensors, tensors_of
from gradwright.loops.nested.cache import cache_kinds, is_cache_part

State = TypeVar("State")


def reset_rows(state: State, mask: Tensor, fresh: object = None, dim: int | None = None) -> State:
    """The state with the rows of new documents as at the start; no gradient goes through them.

    Args:
        state: The state before the segment, nested.
        mask: The rows to reset, bool [row].
        fresh: What they become: a state of the same structure, with as many rows or one; zeros
            by default.
        dim: The dimension of rows in every tensor of the state; by default the only one that is
            as large as `mask`.

    Raises:
        StateError: A tensor has no such dimension, or several; a part has no rows.

    Example:
        >>> h = torch.tensor([[1.0], [2.0]])
        >>> reset_rows((h, 2 * h), torch.tensor([True, False]))
        (tensor([[0.], [2.]]), tensor([[0.], [4.]]))
    """
    _check_mask(mask)
    resets = int(mask.sum())
    if state is None or resets == 0:
        return state
    if resets == len(mask):
        return _all_fresh(state, fresh, len(mask))
    _check_parts(state, fresh)
    start = {} if fresh is None else tensors_of(fresh, "state")

    def renewed(name: str, tensor: Tensor) -> Tensor:
        rows = row_dim(name, tensor, len(mask), dim)
        shape = [-1 if d == rows else 1 for d in range(tensor.dim())]
        there = mask.to(tensor.device).view(shape)
        return torch.where(there, start.get(name, tensor.new_zeros(())).to(tensor), tensor)

    return map_tensors(state, renewed, "state")


def row_dim(name: str, tensor: Tensor, n_rows: int, dim: int | None) -> int:
    """The dimension of the rows of one tensor of a state.

    Raises:
        StateError: `dim` is not it, or nothing says which one it is.
    """
    shape = list(tensor.shape)
    if dim is not None:
        if -tensor.dim() <= dim < tensor.dim() and shape[dim] == n_rows:
            return dim % tensor.dim()
        raise StateError(f"`{name}` has shape {shape}: its dimension {dim} has not {n_rows} rows.")
    fitting = [d for d, size in enumerate(shape) if size == n_rows]
    if len(fitting) == 1:
        return fitting[0]
    which = "no dimension has" if not fitting else f"dimensions {fitting} have"
    raise StateError(
        f"`{name}` has shape {shape}, and {which} {n_rows} entries: say with `rows=` which "
        "dimension of the state's tensors holds the rows."
    )


def _check_mask(mask: Tensor) -> None:
    if mask.dtype is not torch.bool or mask.dim() != 1:
        raise StateError(
            f"the mask of rows to reset must be bool [row]: got {mask.dtype} of shape "
            f"{list(mask.shape)}."
        )


def _all_fresh(state: State, fresh: Any, n_rows: int) -> State:
    """All rows begin anew: the start itself, or zeros where nobody gave one."""
    if fresh is None:
        _check_parts(state, None)
        return map_tensors(state, lambda _, tensor: torch.zeros_like(tensor), "state")
    now = tensors_of(state, "state")

    def for_all(name: str, tensor: Tensor) -> Tensor:
        there = now.get(name, tensor)
        sizes = zip(tensor.shape, there.shape, strict=False)
        one = [pair for pair in sizes if pair[0] != pair[1]] == [(1, n_rows)]
        return tensor.expand_as(there).contiguous() if one else tensor

    return map_tensors(fresh, for_all, "state")  # type: ignore[no-any-return]


def _check_parts(state: object, fresh: object) -> None:
    """Refuse parts that belong to all rows together."""
    at_start = {} if fresh is None else _of_all_rows(fresh)
    for name, number in _of_all_rows(state).items():
        if is_cache_part(number):
            raise StateError(
                f"`{name}` is a key-value cache: a row of zeros would still be attended to, so "
                "its rows cannot be reset. Mask the past of these rows in `run`, or start a new "
                "cache."
            )
        if name not in at_start or at_start[name] != number:
            raise StateError(
                f"`{name}` is {number}, one number for all rows, so it cannot be reset for some of "
                "them: make it a tensor with one entry per row."
            )


def _of_all_rows(state: object) -> dict[str, object]:
    """The numbers and the caches in a state."""
    found: dict[str, object] = {}

    def note(name: str, part: object) -> object:
        if not isinstance(part, Tensor | bool):
            found[name] = part
        return part

    map_tensors(state, note, "state", (Tensor, int, float, complex, *cache_kinds()))
    return found
