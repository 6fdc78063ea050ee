"""Bad input is named, with what to do."""

from typing import Any

import pytest
import torch
from torch import nn

from gradwright.engine import LossError, SharedError, TaskMismatch
from gradwright.monitor import ConflictMonitor
from tests.monitor.models import Shared, losses_of

WEIGHT = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ([WEIGHT], TypeError, "`model` is a list: give a module, or groups"),
        (nn.ReLU(), ValueError, "no parameter that requires a gradient"),
        ({}, ValueError, "no parameter that requires a gradient"),
        (nn.Linear(2, 2).requires_grad_(False), ValueError, "requires a gradient"),
        ({"w": []}, ValueError, "group 'w' is empty"),
        ({"w": WEIGHT}, TypeError, "group 'w' is one tensor"),
        ({3: [WEIGHT]}, TypeError, "group named 3"),
        ({"w": [WEIGHT, 2 * WEIGHT]}, ValueError, "a computed tensor at position 1"),
        ({"w": ["weight"]}, ValueError, "'w' has a str at position 0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_models(model, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ConflictMonitor(model)


@pytest.mark.parametrize("name", ["every", "keep"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, None])
def test_numbers_of_steps(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"`{name}` is {value!r}: give a number of steps"):
        ConflictMonitor(nn.Linear(2, 2), **{name: value})


def test_other_tasks_than_before() -> None:
    monitor = ConflictMonitor(model := Shared(), every=1)
    monitor.watch(losses_of(model, 0))
    losses = losses_of(model, 1)

    with pytest.raises(TaskMismatch, match=r"\['c', 'b', 'a'\].*had \['a', 'b', 'c'\].*None"):
        monitor.watch(dict(reversed(losses.items())))
    with pytest.raises(TaskMismatch, match="None for one that is absent"):
        monitor.watch({task: loss for task, loss in losses.items() if task != "b"})
    assert len(monitor.snapshots) == 1


def test_losses_without_graph() -> None:
    with pytest.raises(LossError, match="no graph"):
        ConflictMonitor({"w": [WEIGHT]}).watch([WEIGHT.sum(), torch.ones(())])


def test_a_model_that_the_losses_do_not_reach() -> None:
    monitor = ConflictMonitor(nn.Sequential(nn.Linear(2, 2)))

    with pytest.raises(SharedError, match="any of the 1 layers to watch, among them '0'"):
        monitor.watch([WEIGHT.sum(), WEIGHT.square().sum()])
    assert not monitor.snapshots


def test_nothing_recorded() -> None:
    monitor = ConflictMonitor({"w": [WEIGHT]})

    for ask in (lambda: monitor.latest, monitor.scalars, monitor.plot):
        with pytest.raises(RuntimeError, match=r"call `watch\(losses\)` before the backward"):
            ask()
    assert monitor.table() == [] and monitor.pairs() == []
