"""Accumulation: gradients of sums over several micro-batches, divided once."""

from gradwright.loops.accumulation.batch_norm import BatchNormWarning
from gradwright.loops.accumulation.mean import WindowMean
from gradwright.loops.accumulation.self_check.check import check_window
from gradwright.loops.accumulation.self_check.report import WindowReport
from gradwright.loops.accumulation.surroundings import StrangerWarning
from gradwright.loops.accumulation.window import Window
from gradwright.loops.accumulation.windows import windows

__all__ = [
    "windows",
    "Window",
    "WindowMean",
    "check_window",
    "WindowReport",
    "BatchNormWarning",
    "StrangerWarning",
]
