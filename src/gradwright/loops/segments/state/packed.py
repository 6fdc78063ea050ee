"""The state of packed sequences: their rows are sorted, end one after the other, and come back."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from gradwright.loops.nested import map_tensors, tensors_of
from gradwright.loops.segments.data.pieces import Piece
from gradwright.loops.segments.state.rows import row_dim


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
        self._moves = self._running > 1 and (
            self._order is not None or int(packed.batch_sizes[-1]) < self._running
        )
        self._dims: dict[str, int] = {}  # of rows, by the name of the state's tensor
        self._ended: list[Any] = []  # the last states of rows that have ended, longest last
        self._last: Any = None

    def enter(self, state: Any, piece: Piece[Any]) -> Any:
        """The state of the rows that this segment has."""
        assert piece.rows is not None
        before, now = piece.rows
        if piece.index == 0:
            return self._in_order(state, self._order)
        return state if now == before else self._narrowed(state, 0, now)

    def leave(self, state: Any, piece: Piece[Any]) -> None:
        """Keep the last states of the rows that this segment had not."""
        assert piece.rows is not None
        _, now = piece.rows
        if piece.index == 0 and self._moves:  # while there are many rows, so few can be mistaken
            self._dims = {
                name: row_dim(name, tensor, now, self._dim)
                for name, tensor in tensors_of(state, "state").items()
            }
        if now < self._running:
            self._ended.append(self._narrowed(self._last, now, self._running - now))
        self._running, self._last = now, state

    def whole(self) -> Any:
        """The last state of every row, in the user's order."""
        return self._in_order(self._joined([self._last, *reversed(self._ended)]), self._back)

    def _narrowed(self, state: Any, start: int, n_rows: int) -> Any:
        def part(name: str, tensor: Tensor) -> Tensor:
            return tensor.narrow(self._dims[name], start, n_rows)

        return map_tensors(state, part, "state")

    def _joined(self, states: list[Any]) -> Any:
        if len(states) == 1:
            return states[0]
        parts = [tensors_of(state, "state") for state in states]

        def join(name: str, _: Tensor) -> Tensor:
            return torch.cat([part[name] for part in parts], dim=self._dims[name])

        return map_tensors(states[0], join, "state")

    def _in_order(self, state: Any, order: Tensor | None) -> Any:
        if order is None or len(order) == 1:
            return state

        def select(name: str, tensor: Tensor) -> Tensor:
            rows = row_dim(name, tensor, len(order), self._dims.get(name, self._dim))
            return tensor.index_select(rows, order.to(tensor.device))

        return map_tensors(state, select, "state")


def packed_in(batch: object) -> PackedSequence | None:
    """The first packed sequence of a batch, which all others are packed like."""
    found: list[PackedSequence] = []

    def note(_: str, leaf: Tensor | PackedSequence) -> Tensor | PackedSequence:
        if isinstance(leaf, PackedSequence):
            found.append(leaf)
        return leaf

    map_tensors(batch, note, "batch", (Tensor, PackedSequence))
    return found[0] if found else None
