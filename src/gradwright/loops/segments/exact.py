"""The gradient of full BPTT, with the graph of one segment alive at a time.

All segments run once without a graph, and the states between them are kept. Then they run again,
the last one first, each with a graph of its own; the gradient that a segment asks of the state
before it goes into the backward of the segment before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from gradwright.graph.walk import leaves
from gradwright.loops.errors import SegmentError
from gradwright.loops.nested import tensors_of
from gradwright.loops.segments.counts import numbers
from gradwright.loops.segments.data.pieces import Piece, Pieces
from gradwright.loops.segments.guard import Guard
from gradwright.loops.segments.rerun.buffers import watch_buffers
from gradwright.loops.segments.rerun.inject import Carried, inject
from gradwright.loops.segments.rerun.moment import Moment, moment
from gradwright.loops.segments.run import Ran, Run, call
from gradwright.loops.segments.segment import Segment, segment_of
from gradwright.loops.segments.state.between import (
    OneStructure,
    as_leaves,
    copied,
    detached,
    gradients_of,
)
from gradwright.loops.segments.ways import Ways

Data = TypeVar("Data")


@dataclass(frozen=True)
class First:
    """What the first run of a segment leaves for the second."""

    state: Any  # before the segment
    moment: Moment
    count: float | Tensor  # tokens


def exact_segments(
    pieces: Pieces[Data],
    run: Run[Data],
    state: Any,
    ways: Ways,
    tally: Callable[[Piece[Data]], float | Tensor],
    factors: Callable[[Sequence[float]], Sequence[float]],
    guard: Guard,
) -> Iterator[Segment[Data, Any]]:
    """Run the segments without a graph, then again from the last to the first.

    `tally` says how many tokens a segment has, `factors` what the losses are multiplied by, for
    the tokens of all segments.

    Raises:
        SegmentError: The loop went on without the backward of a segment, or changed a parameter.
    """
    firsts, after = _run_all(pieces, run, state, ways, tally)
    counts = numbers([first.count for first in firsts])
    weights = factors(counts)
    carried = Carried({})
    for index in reversed(range(len(firsts))):
        first = firsts.pop()
        before = state if index == 0 else as_leaves(first.state)
        if weights[index] or carried.gradients:
            guard.check()
            with first.moment.again():
                piece = pieces[index]
                ran = call(run, piece.data, ways.enter(copied(before), piece), index)
            segment = _segment(piece, ran, counts[index], weights[index], after, carried)
            guard.note([segment.loss], list(tensors_of(before).values()) if index else [])
            del ran
            yield segment
            _check_taken(carried, index)
            carried = Carried(gradients_of(before) if index else {})
            if index and not carried.gradients:
                _check_not_reached(segment.loss, before, index)
        after = first.state


def _run_all(
    pieces: Pieces[Data],
    run: Run[Data],
    state: Any,
    ways: Ways,
    tally: Callable[[Piece[Data]], float | Tensor],
) -> tuple[list[First], Any]:
    """What the second run needs of each segment, and the last state."""
    firsts: list[First] = []
    structure, now = OneStructure(), None
    state = detached(state)
    with watch_buffers() as watched:
        for index in range(len(pieces)):
            now = moment(watched.changing, now)
            piece = pieces[index]
            with torch.no_grad():
                ran = call(run, piece.data, ways.enter(copied(state), piece), index)
            now = replace(now, buffers=[*now.buffers, *watched.found()])
            structure.check(ran.state, index)
            firsts.append(First(state, now, tally(piece)))
            state = detached(ran.state)
            ways.leave(state, piece)
    torch.clear_autocast_cache()  # weights cast without a graph would end it in the second run
    return firsts, state


def _segment(
    piece: Piece[Data], ran: Ran[Any], count: float, weight: float, after: Any, carried: Carried
) -> Segment[Data, Any]:
    if len(ran.losses) > 1:
        raise SegmentError(
            f"`run` returned {len(ran.losses)} losses, but the exact gradient carries that of one "
            "loss from segment to segment: add them up with their weights."
        )
    loss = ran.present[0].reshape(())
    loss = loss * weight if weight else torch.zeros_like(loss, requires_grad=True)
    loss = inject(loss, ran.state, carried)
    segment = segment_of(piece, replace(ran, losses=(loss,)), after, count, 1.0)
    return replace(segment, value=ran.value)


def _check_taken(carried: Carried, index: int) -> None:
    if not carried.taken:
        raise SegmentError(
            f"segment {index} had no backward: call it on `segment.loss` before the loop goes on. "
            "Each segment's backward carries the gradient of those after it."
        )


def _check_not_reached(loss: Tensor, before: Any, index: int) -> None:
    """The state got no gradient: that is right only where the loss does not depend on it."""
    state = {id(tensor) for tensor in tensors_of(before).values()}
    if loss.grad_fn is not None and any(id(leaf) in state for leaf in leaves([loss.grad_fn])):
        raise SegmentError(
            f"the backward of segment {index} gave no gradient to the state before it: call "
            "`segment.loss.backward()` without `inputs`; `torch.autograd.grad` leaves it out, too."
        )
