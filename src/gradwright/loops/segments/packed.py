"""The state of packed sequences: their rows are sorted, end one after the other, and come back."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from gradwright.loops.nested import map_tensors, tensors_of
from gradwright.loops.segments.pieces import Piece
from gradwright.loops.segments.rows import narrowed, row_dim


class PackedRows:
    """Follows the rows of one window of packed sequences.

    Within the window the rows lie as in the packed data, longest first. The states before and
    after it have them in the user's order.

    Args:
        packed: One of the window's packed sequences.
        dim: The dimension of rows in the state's tensors, where it is known.
    """

    def __init__(self, packed: PackedSequence, dim: int | None) -> None:
        self._order, self._back = packed.sorted_indices, packed.unsorted_indices
        self._running, self._dim = int(packed.batch_sizes[0]), dim
        self._ended: list[Any] = []  # the last states of rows that have ended, longest last
        self._last: Any = None

    def enter(self, state: Any, piece: Piece[Any]) -> Any:
        """The state of the rows that this segment has."""
        assert piece.rows is not None
        before, now = piece.rows
        if piece.index == 0:
            return self._in_order(state, self._order)
        return narrowed(state, now, before, self._dim)

    def leave(self, state: Any, piece: Piece[Any]) -> None:
        """Keep the last states of the rows that this segment had not."""
        assert piece.rows is not None
        _, now = piece.rows
        if now < self._running:
            ended = self._running - now
            self._ended.append(narrowed(self._last, ended, self._running, self._dim, now))
        self._running, self._last = now, state

    def whole(self) -> Any:
        """The last state of every row, in the user's order."""
        return self._in_order(self._joined([self._last, *reversed(self._ended)]), self._back)

    def _joined(self, states: list[Any]) -> Any:
        if len(states) == 1:
            return states[0]
        parts = [tensors_of(state) for state in states]

        def join(name: str, tensor: Tensor) -> Tensor:
            rows = row_dim(name, tensor, self._running, self._dim)
            return torch.cat([part[name] for part in parts], dim=rows)

        return map_tensors(states[0], join)

    def _in_order(self, state: Any, order: Tensor | None) -> Any:
        return state if order is None else map_tensors(state, self._selected(order))

    def _selected(self, order: Tensor) -> Callable[[str, Tensor], Tensor]:
        def select(name: str, tensor: Tensor) -> Tensor:
            rows = row_dim(name, tensor, len(order), self._dim)
            return tensor.index_select(rows, order.to(tensor.device))

        return select
