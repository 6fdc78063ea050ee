"""Accumulation: gradients of sums over several micro-batches, divided once."""

from gradwright.loops.accumulation.batch_norm import BatchNormWarning
from gradwright.loops.accumulation.mean import WindowMean
from gradwright.loops.accumulation.surroundings import StrangerWarning
from gradwright.loops.accumulation.window import Window
from gradwright.loops.accumulation.windows import windows

__all__ = ["BatchNormWarning", "StrangerWarning", "Window", "WindowMean", "windows"]
