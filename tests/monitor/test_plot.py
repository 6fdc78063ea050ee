"""The picture: a real PNG, with the numbers of the monitor in it."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from gradwright.monitor import ConflictMonitor
from tests.monitor.models import Shared, losses_of


def heat_maps(figure: Figure) -> list[np.ndarray]:
    """What the three panels show, each [layer, step]."""
    return [np.asarray(panel.collections[0].get_array()) for panel in figure.axes[:3]]


def test_png(tmp_path: Path) -> None:
    model = Shared()
    monitor = ConflictMonitor(model, every=2)
    for step in range(7):
        monitor.watch(losses_of(model, step))
    figure = monitor.plot(tmp_path / "conflicts.png")

    assert (tmp_path / "conflicts.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    spreads = [one.spreads for one in monitor.snapshots]
    layers = ["trunk.0", "trunk.2", "experts.0"]
    values = np.array([[of_one[layer] for of_one in spreads] for layer in layers])
    values[..., 2] = np.log10(values[..., 2])
    for place, shown in enumerate(heat_maps(figure)):
        np.testing.assert_allclose(shown, values[..., place])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == layers
    assert figure.axes[0].get_xlim() == (-1, 7)
    assert figure.axes[0].get_title() == "least cosine of 3 pairs"


def test_many_tasks_and_layers_stay_readable(tmp_path: Path) -> None:
    """139 tasks and 90 layers: three maps of 90 rows, and at most 40 names."""
    torch.manual_seed(0)
    weights = {f"layer {place}": [nn.Parameter(torch.randn(3))] for place in range(90)}
    flat = torch.cat([one for (one,) in weights.values()])
    monitor = ConflictMonitor(weights)
    monitor.watch((torch.randn(139, 270) @ flat).unbind())
    figure = monitor.plot(tmp_path / "many.png")

    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [f"layer {place}" for place in range(0, 90, 3)]
    assert [shown.shape for shown in heat_maps(figure)] == [(90, 1)] * 3
    assert figure.axes[0].get_title() == "least cosine of 9,591 pairs"
    assert figure.get_size_inches().max() < 13


def test_a_layer_that_comes_later_is_empty_before() -> None:
    weights = [nn.Parameter(torch.ones(2)) for _ in range(2)]
    monitor = ConflictMonitor({"early": [weights[0]], "late": [weights[1]]}, every=1)
    monitor.watch([weights[0].sum(), weights[0].square().sum()])
    both = weights[0].sum() + weights[1].sum()
    monitor.watch([both, both.square()])

    least = heat_maps(monitor.plot())[0]
    assert np.ma.getmaskarray(np.ma.masked_invalid(least)).tolist() == [
        [False, False],
        [True, False],
    ]


@pytest.mark.parametrize("factor", [0.0, 1.0, 1e30], ids=["no direction", "equal", "far apart"])
def test_norms_of_any_ratio_are_drawn(factor: float, tmp_path: Path) -> None:
    weight = nn.Parameter(torch.ones(2, dtype=torch.float64))
    monitor = ConflictMonitor({"w": [weight]}, every=1)
    for _ in range(2):
        monitor.watch([weight.sum(), factor * weight.sum()])
    figure = monitor.plot(tmp_path / "conflicts.png")

    ratio = heat_maps(figure)[2]
    if factor:
        np.testing.assert_allclose(ratio, np.log10(factor), atol=1e-12)
    else:
        assert np.isnan(ratio).all()


def test_no_two_tasks_have_met() -> None:
    weight = nn.Parameter(torch.ones(2))
    monitor = ConflictMonitor({"w": [weight]})
    monitor.watch([weight.sum()])

    with pytest.raises(RuntimeError, match="no two tasks have reached the same layer"):
        monitor.plot()


def test_matplotlib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monitor = ConflictMonitor(model := Shared())
    monitor.watch(losses_of(model, 0))

    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        monitor.plot()
