"""Which length of a segment fits into memory, and what truncation there loses."""

from gradwright.loops.segments.measure.lags import Lags
from gradwright.loops.segments.measure.measure import measure_lengths
from gradwright.loops.segments.measure.report import LengthReport
from gradwright.loops.segments.measure.tried import Tried

__all__ = ["measure_lengths", "LengthReport", "Tried", "Lags"]
