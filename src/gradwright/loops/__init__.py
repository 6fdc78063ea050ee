"""Training loops of several backward passes: segments, windows of micro-batches, cut graphs."""

from gradwright.loops.accumulation import Window, WindowMean, windows
from gradwright.loops.errors import CutError, NestedError, SegmentError, StateError, WindowError
from gradwright.loops.nested import register
from gradwright.loops.segments import RandomLengths, Segment, reset_rows, scaled_lr, tbptt
from gradwright.loops.stages import Cut, cut

__all__ = [
    "tbptt",
    "Segment",
    "RandomLengths",
    "reset_rows",
    "scaled_lr",
    "windows",
    "Window",
    "WindowMean",
    "cut",
    "Cut",
    "CutError",
    "NestedError",
    "SegmentError",
    "StateError",
    "WindowError",
    "register",
]
