"""What `measure_lengths` found, as numbers, as text and as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradwright.loops.segments.measure.lags import Lags
from gradwright.loops.segments.measure.plot import plotted
from gradwright.loops.segments.measure.text import lines_of
from gradwright.loops.segments.measure.tried import Tried

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class LengthReport:
    """Which length of a segment fits, and what truncation there loses; `print` shows a table."""

    times: int  # of the batch
    budget: int  # bytes
    tried: tuple[Tried, ...]  # the lengths, ascending
    lags: Lags | None  # None where they were left out, or no end had a token

    @property
    def length(self) -> int | None:
        """The longest of the lengths whose backward fits the budget; None: none does."""
        return max((each.length for each in self.tried if each.fits), default=None)

    def __str__(self) -> str:
        return "\n".join(lines_of(self.times, self.budget, self.tried, self.lags))

    def plot(
        self, path: str | Path | None = None, *, axes: tuple[Axes, Axes] | None = None
    ) -> Figure:
        """Two panels: what is lost at each length, and how far back gradient reaches.

        Args:
            path: Where to write the picture: PNG, SVG, PDF, by its ending.
            axes: Where to draw the two instead of into a new figure.

        Returns:
            The figure with both.

        Raises:
            ModuleNotFoundError: Matplotlib is not installed.
        """
        figure = plotted(self.length, self.tried, self.lags, axes)
        if path is not None:
            figure.savefig(path)
        return figure
