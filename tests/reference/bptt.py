"""Backpropagation through time written out by hand: the obvious twins of `gradwright.tbptt`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Run = Callable[[Any, Any], tuple[Any, ...]]


def cuts(batch: tuple[Tensor, ...], length: int, dim: int = 1) -> list[tuple[Tensor, ...]]:
    """The batch in pieces of `length` times, the last one shorter."""
    return list(zip(*(tensor.split(length, dim) for tensor in batch), strict=True))


def one_graph(
    run: Run, segments: Sequence[Any], weights: Sequence[float], state: Any = None
) -> tuple[Tensor, Any]:
    """All segments in order in one graph: the weighted sum of their losses, and the last state."""
    total: Any = 0
    for segment, weight in zip(segments, weights, strict=True):
        loss, state = run(segment, state)[:2]
        total = total + loss * weight
    return total, state


def token_weights(segments: Sequence[tuple[Tensor, ...]], dim: int = 1) -> list[float]:
    """Each segment's share of the window's times."""
    lengths = [segment[0].shape[dim] for segment in segments]
    return [length / sum(lengths) for length in lengths]


def repackage(state: Any) -> Any:
    """Detaches the hidden state from its history (salesforce/awd-lstm-lm, utils.py)."""
    if state is None or isinstance(state, Tensor):
        return None if state is None else state.detach()
    return tuple(repackage(part) for part in state)


def truncated(run: Run, segments: Sequence[Any], state: Any = None) -> Iterator[Tensor]:
    """The losses of the segments in order, the state detached between them."""
    for segment in segments:
        loss, state = run(segment, repackage(state))[:2]
        yield loss


def going_back(run: Run, segments: Sequence[Any], back: int) -> Iterator[Tensor]:
    """The same, each loss with a graph over the `back` segments before its own.

    They are computed again from the state before the oldest one, with the parameters of now.
    """
    states: list[Any] = [None]  # before each segment, as last computed
    for index, segment in enumerate(segments):
        first = max(index - back, 0)
        state = repackage(states[first])
        for earlier in range(first, index):
            states[earlier] = repackage(state)
            _, state = run(segments[earlier], state)[:2]
        states[index] = repackage(state)
        loss, after = run(segment, state)[:2]
        states.append(repackage(after))
        yield loss


def awd_lstm_epoch(
    model: nn.Module,
    run: Run,
    optimizer: Optimizer,
    batch: tuple[Tensor, ...],
    lengths: Sequence[int],
    usual: int,
    clip: float,
) -> None:
    """One pass of salesforce/awd-lstm-lm, main.py, `train`: the learning rate goes with length."""
    start, state = 0, None
    for length in lengths:
        segment = tuple(tensor[:, start : start + length] for tensor in batch)
        before = optimizer.param_groups[0]["lr"]
        optimizer.param_groups[0]["lr"] = before * (segment[0].shape[1] / usual)
        optimizer.zero_grad()
        loss, state = run(segment, repackage(state))[:2]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.param_groups[0]["lr"] = before
        start += length
