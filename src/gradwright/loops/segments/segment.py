"""One segment of a sequence, with its loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from gradwright.engine import Losses
from gradwright.loops.segments.data.pieces import Piece
from gradwright.loops.segments.run import Ran, total

Data = TypeVar("Data")
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Segment(Generic[Data, State]):
    """What `tbptt` hands to the loop: call a backward on `loss`, then go on."""

    index: int
    start: int  # the time at which it begins
    length: int  # times in it
    data: Data
    loss: Tensor  # weighted: the sum over a window is the window's mean
    losses: Losses  # where `run` gave several: the same, for `gradwright.backward`
    value: Tensor  # the loss as `run` gave it, without a graph
    count: float  # tokens
    state: State  # after the segment, without a graph
    output: Any  # what else `run` returned


def segment_of(
    piece: Piece[Data], ran: Ran[State], state: State, count: float, weight: float
) -> Segment[Data, State]:
    """What is handed to the loop of a segment that ran, its losses times `weight`."""
    losses = ran.weighted(weight)
    parts = losses.values() if isinstance(losses, Mapping) else losses
    return Segment(
        index=piece.index,
        start=piece.start,
        length=piece.length,
        data=piece.data,
        loss=total([part for part in parts if part is not None]),
        losses=losses,
        value=ran.value,
        count=count,
        state=state,
        output=ran.output,
    )
