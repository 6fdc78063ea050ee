"""Truncated and exact backpropagation through time, segment by segment."""

from gradwright.loops.segments.data.lengths import RandomLengths, scaled_lr
from gradwright.loops.segments.segment import Segment
from gradwright.loops.segments.state.rows import reset_rows
from gradwright.loops.segments.tbptt import tbptt

__all__ = ["RandomLengths", "Segment", "reset_rows", "scaled_lr", "tbptt"]
