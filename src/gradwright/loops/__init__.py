"""Training loops of several backward passes: segments, windows of micro-batches, cut graphs."""

from gradwright.loops.accumulation import (
    BatchNormWarning,
    StrangerWarning,
    Window,
    WindowMean,
    WindowReport,
    check_window,
    windows,
)
from gradwright.loops.errors import CutError, NestedError, SegmentError, StateError, WindowError
from gradwright.loops.nested import register
from gradwright.loops.segments import RandomLengths, Segment, reset_rows, scaled_lr, tbptt
from gradwright.loops.segments.measure import Lags, LengthReport, Tried, measure_lengths
from gradwright.loops.stages import Cut, cut

__all__ = [
    "tbptt",
    "Segment",
    "RandomLengths",
    "reset_rows",
    "scaled_lr",
    "measure_lengths",
    "LengthReport",
    "Lags",
    "Tried",
    "windows",
    "Window",
    "WindowMean",
    "check_window",
    "WindowReport",
    "cut",
    "Cut",
    "register",
    "BatchNormWarning",
    "CutError",
    "NestedError",
    "SegmentError",
    "StateError",
    "StrangerWarning",
    "WindowError",
]
