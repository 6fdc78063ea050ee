"""A monitor that is saved and loaded goes on as if nothing had happened."""

from pathlib import Path

import pytest
import torch

from gradwright.monitor import ConflictMonitor
from tests.monitor.models import Shared, train


def made() -> tuple[Shared, torch.optim.Optimizer, ConflictMonitor]:
    model = Shared()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    return model, optimizer, ConflictMonitor(model, every=2, keep=3)


def test_training_goes_on_from_a_saved_monitor(tmp_path: Path) -> None:
    model, optimizer, whole = made()
    train(model, optimizer, range(11), whole)

    model, optimizer, first = made()
    train(model, optimizer, range(5), first)
    torch.save(first.state_dict(), tmp_path / "monitor.pt")
    resumed = ConflictMonitor(model, every=2, keep=3)
    resumed.load_state_dict(torch.load(tmp_path / "monitor.pt"))
    train(model, optimizer, range(5, 11), resumed)

    assert resumed.table() == whole.table() and len(whole.table()) == 3
    assert resumed.pairs() == whole.pairs()
    assert str(resumed) == str(whole)
    assert [one.step for one in resumed.snapshots] == [6, 8, 10]
    for one, other in zip(resumed.snapshots, whole.snapshots, strict=True):
        for layer, gramian in one.gramians.items():
            torch.testing.assert_close(gramian, other.gramians[layer], equal_nan=True)
    curves = [monitor.state_dict()["curve"] for monitor in (resumed, whole)]
    torch.testing.assert_close(*curves, equal_nan=True)
    assert resumed.state_dict()["steps"] == [0, 2, 4, 6, 8, 10]


def test_a_state_is_a_copy() -> None:
    model, optimizer, monitor = made()
    train(model, optimizer, range(1), monitor)
    state = monitor.state_dict()
    before = state["summaries"]["trunk.0"]["cosines"].clone()
    loaded = ConflictMonitor(model, every=1)
    loaded.load_state_dict(state)
    train(model, optimizer, range(4), loaded)
    train(model, optimizer, range(4), monitor)

    assert torch.equal(state["summaries"]["trunk.0"]["cosines"], before)
    assert state["steps"] == [0]


def test_a_state_of_other_layers_is_refused() -> None:
    model, optimizer, monitor = made()
    train(model, optimizer, range(1), monitor)
    other = ConflictMonitor(model.trunk)

    with pytest.raises(ValueError, match=r"of 7 layers .* this monitor has 2 layers \['0', '2'\]"):
        other.load_state_dict(monitor.state_dict())
    assert not other.snapshots
