"""The report as a picture, drawn by Matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradwright.loops.segments.measure.lags import Lags
from gradwright.loops.segments.measure.tried import Tried

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (9.0, 3.5)  # inches
_FLOOR = 1e-8  # of the logarithmic axis


def plotted(
    length: int | None,
    tried: Sequence[Tried],
    lags: Lags | None,
    axes: tuple[Axes, Axes] | None,
) -> Figure:
    """The figure; a dashed line stands at the longest length that fits."""
    left, right = _new_axes() if axes is None else axes
    _draw_lost(left, tried)
    _draw_lags(right, lags)
    for panel in (left, right):
        panel.xaxis.set_major_formatter("{x:g}")
        if length is not None:
            panel.axvline(length, color="grey", linestyle="--", label=f"{length} times fit")
            panel.legend()
    figure = left.get_figure(root=True)
    assert figure is not None
    return figure


def _new_axes() -> tuple[Axes, Axes]:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the picture needs Matplotlib: pip install matplotlib", name=error.name
        ) from error
    left, right = Figure(_SIZE, dpi=150, layout="constrained").subplots(1, 2)
    return left, right


def _draw_lost(panel: Axes, tried: Sequence[Tried]) -> None:
    known = [(each.length, each.error) for each in tried if each.error is not None]
    panel.plot([length for length, _ in known], [error for _, error in known], marker="o")
    panel.set_xscale("log", base=2)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("length of a segment (times)")
    panel.set_ylabel("relative error of the gradient")
    panel.set_title("Lost by truncation")


def _draw_lags(panel: Axes, lags: Lags | None) -> None:
    panel.set_title("Reaches back")
    panel.set_xlabel("lag (times)")
    panel.set_ylabel("gradient, in units of lag 1")
    if lags is None:
        return
    panel.plot(lags.lags, lags.relative, marker=".")
    panel.set_xscale("log", base=2)
    seen = [value for value in lags.relative if value > _FLOOR]
    if seen:
        panel.set_yscale("log")
        panel.set_ylim(min(seen) / 2, 2 * max(seen))
