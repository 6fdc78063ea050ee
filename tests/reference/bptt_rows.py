"""A window of documents in one graph: resets by mask, tokens by mask, truncation by request."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

Parts = tuple[Tensor, ...]


def spans(total: int, lengths: Iterator[int], borders: Sequence[int]) -> list[tuple[int, int]]:
    """From when to when each segment goes: as long as said, or up to the next border."""
    found, start = [], 0
    for end in sorted({*borders, total} - {0}):
        while start < end:
            found.append((start, min(start + next(lengths), end)))
            start = found[-1][1]
    return found


def window_loss(
    run: Callable[[Parts, Parts | None], tuple[Tensor, Parts]],
    window: Parts,
    resets: Tensor,
    where: Sequence[tuple[int, int]],
    weights: Sequence[float],
    state: Parts | None,
    start: Callable[[], Parts] | None,
    truncate: bool,
) -> tuple[Tensor, Parts | None]:
    """The weighted sum of the segments' losses, and the last state.

    Args:
        run: From a segment and the state before it to its loss and the state after it.
        window: Tensors [row, time, …].
        resets: Where a document begins, bool [row, time].
        where: From when to when each segment goes.
        weights: Of the segments; a segment of weight 0 may have a loss of NaN.
        state: Before the window: tensors [layer, row, width].
        start: The state of a new document; zeros without it.
        truncate: Whether the graph ends between two segments.
    """
    total = torch.zeros((), dtype=torch.float64)
    for (begin, end), weight in zip(where, weights, strict=True):
        fresh = None if start is None else start()
        state = fresh if state is None else _renewed(state, fresh, resets[:, begin])
        loss, state = run(tuple(tensor[:, begin:end] for tensor in window), state)
        total = total + loss * weight if weight else total
        state = tuple(part.detach() for part in state) if truncate else state
    return total, state


def _renewed(state: Parts, fresh: Any, mask: Tensor) -> Parts:
    new = fresh or tuple(torch.zeros_like(part) for part in state)
    there = mask.view(1, -1, 1)
    return tuple(torch.where(there, a, b) for a, b in zip(new, state, strict=True))
