"""Conflicts as a picture, drawn by Matplotlib: layers by time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 12.0  # inches
_MOST_LABELS = 40  # names of layers beside the picture


def plotted(steps: Sequence[int], layers: Sequence[str], values: Tensor, n_tasks: int) -> Figure:
    """Three heat maps from `values` [step, layer, 3]: least and mean cosine, norm ratio.

    Raises:
        ModuleNotFoundError: Matplotlib is missing.
    """
    shown = min(len(layers), _MOST_LABELS)
    figure = _new_figure(height=2.0 + 0.22 * shown)
    panels = figure.subplots(1, 3, sharey=True, squeeze=False)[0]
    pairs = n_tasks * (n_tasks - 1) // 2
    titles = (f"least cosine of {pairs:,} pairs", f"mean cosine of {pairs:,} pairs", "norm ratio")
    for place, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        _draw(panel, title, steps, values[:, :, place].T, cosine=place < 2)
    _name_layers(panels[0], layers)
    return figure


def _new_figure(height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the picture needs Matplotlib: pip install matplotlib", name=error.name
        ) from error
    return Figure((_WIDTH, height), dpi=150, layout="constrained")


def _draw(panel: Axes, title: str, steps: Sequence[int], values: Tensor, *, cosine: bool) -> None:
    """One heat map of `values` [layer, step]; cosines from -1 (red) to 1 (blue)."""
    scale = {"cmap": "RdBu", "vmin": -1.0, "vmax": 1.0} if cosine else {"cmap": "viridis"}
    drawn = values if cosine else values.log10()
    rows = [place - 0.5 for place in range(len(values) + 1)]
    image = panel.pcolormesh(_edges(steps), rows, drawn.numpy(), rasterized=True, **scale)
    bar = panel.figure.colorbar(image, ax=panel)
    if not cosine:
        bar.ax.yaxis.set_major_formatter(lambda power, _: f"{10**power:.3g}")
    panel.set_facecolor("lightgrey")  # no pair of tasks at that step
    panel.set_title(title)
    panel.set_xlabel("step")


def _edges(steps: Sequence[int]) -> list[float]:
    """Where the column of each step begins, and where the last one ends."""
    inner = [(before + after) / 2 for before, after in pairwise(steps)]
    first = inner[0] - steps[0] if inner else 0.5
    last = steps[-1] - inner[-1] if inner else 0.5
    return [steps[0] - first, *inner, steps[-1] + last]


def _name_layers(panel: Axes, layers: Sequence[str]) -> None:
    """The first layer on top; every n-th name where not all of them fit."""
    every = -(-len(layers) // _MOST_LABELS)
    places = range(0, len(layers), every)
    panel.set_yticks(list(places), [layers[place] for place in places])
    panel.set_ylim(len(layers) - 0.5, -0.5)
