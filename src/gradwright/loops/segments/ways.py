"""How the state comes into a segment and leaves it, whatever way the segments are run."""

from collections.abc import Callable
from typing import Any, NamedTuple

from gradwright.loops.segments.data.pieces import Piece


class Ways(NamedTuple):
    """Two functions that every run of a window is given."""

    enter: Callable[[Any, Piece[Any]], Any]
    """From the state before a segment to the one it begins with: rows that have ended are left
    out, rows of new documents are as at the start. It may be called again for the second run."""

    leave: Callable[[Any, Piece[Any]], None]
    """Told the state after each segment, without a graph, once and in order."""
