"""Watching leaves gradients, graph, random state and training as they were."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from gradwright.engine import LossError
from gradwright.monitor import ConflictMonitor
from tests.monitor.models import Shared, losses_of, train


@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_to_the_bit(every: int) -> None:
    states = []
    for watched in (False, True):
        model = Shared(dropout=0.5)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        torch.manual_seed(1)
        monitor = ConflictMonitor(model, every=every) if watched else None
        train(model, optimizer, range(9), monitor)
        states.append((model.state_dict(), optimizer.state_dict()["state"], torch.rand(1)))

    (plain, moments, random), (same, same_moments, same_random) = states
    assert monitor is not None and len(monitor.snapshots) == 9 // every
    assert all(torch.equal(plain[name], same[name]) for name in plain)
    for place, state in moments.items():
        assert all(torch.equal(state[name], same_moments[place][name]) for name in state)
    assert torch.equal(random, same_random)


def test_gradients_that_are_there_stay() -> None:
    model = Shared()
    for parameter in model.trunk.parameters():
        parameter.grad = torch.full_like(parameter, 7.0)
    before = [parameter.grad for parameter in model.parameters()]
    versions = [None if one is None else one._version for one in before]
    called: list[object] = []
    weight = model.get_parameter("trunk.0.weight")
    weight.register_post_accumulate_grad_hook(called.append)
    ConflictMonitor(model).watch(losses_of(model, 0))

    after = [parameter.grad for parameter in model.parameters()]
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert [None if one is None else one._version for one in after] == versions
    assert not called


def test_the_graph_can_be_used_once_more_and_is_then_free() -> None:
    model = Shared()
    losses = [loss for loss in losses_of(model, 0).values() if loss is not None]
    ConflictMonitor(model).watch(losses)
    torch.stack(losses).sum().backward()

    with pytest.raises(RuntimeError, match="second time"):
        torch.stack(losses).sum().backward()


def test_a_step_that_is_not_recorded_looks_at_nothing() -> None:
    model = Shared()
    monitor = ConflictMonitor(model, every=2)
    assert monitor.watch(losses_of(model, 0)) is not None

    assert monitor.watch({"no": "loss at all"}) is None  # type: ignore[dict-item]


@pytest.mark.parametrize("reentrant", [False, True], ids=["plain", "reentrant"])
def test_checkpoints(reentrant: bool) -> None:
    """Dropout under a checkpoint draws the same numbers again; the cosines are those without."""
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(4, 5), nn.Dropout(), nn.Linear(5, 3)).double()
    inputs = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    found = []
    for kind in ("none", "checkpoint"):
        torch.manual_seed(1)
        wrapped = kind == "checkpoint"
        out = checkpoint(trunk, inputs, use_reentrant=reentrant) if wrapped else trunk(inputs)
        monitor = ConflictMonitor(trunk)
        monitor.watch([out[:, 0].square().mean(), out.sum()])
        found.append((monitor.latest.cosines, torch.rand(1)))

    (cosines, random), (same, same_random) = found
    assert list(cosines) == list(same) == ["0", "2"]
    for name in cosines:
        torch.testing.assert_close(same[name], cosines[name], rtol=0, atol=1e-12)
    assert torch.equal(random, same_random)
    assert all(parameter.grad is None for parameter in trunk.parameters())


def test_an_error_counts_no_step_and_records_nothing() -> None:
    model = Shared()
    monitor = ConflictMonitor(model, every=2)
    before = copy.deepcopy(monitor.state_dict())
    with pytest.raises(LossError, match="'b' is nan"):
        monitor.watch(losses_of(model, 0) | {"b": next(model.parameters()).sum() * torch.nan})

    assert monitor.state_dict()["calls"] == before["calls"] == 0
    assert not monitor.snapshots
    assert monitor.watch(losses_of(model, 0)) is not None
