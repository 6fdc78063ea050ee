"""What a monitor keeps does not grow without end, and holds no graph."""

import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

from gradwright.architecture import MMoE
from gradwright.monitor import ConflictMonitor, curve
from tests.monitor.models import Shared, losses_of


def test_the_curve_forgets_the_oldest_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve, "MOST_POINTS", 4)
    weight = nn.Parameter(torch.ones(2))
    monitor = ConflictMonitor({"w": [weight]}, every=1, keep=2)
    for step in range(7):
        monitor.watch([weight.sum(), (step - 3) * weight.sum()])
    state = monitor.state_dict()

    assert state["steps"] == [3, 4, 5, 6]
    least = state["curve"][1:, 0, 0]
    torch.testing.assert_close(least, torch.ones(3, dtype=torch.float64))
    assert len(state["snapshots"]) == 2
    (row,) = monitor.table()
    assert (row.steps, row.conflict_share) == (6, 0.5)


def test_no_graph_is_held() -> None:
    model = Shared()
    monitor = ConflictMonitor(model)
    losses = losses_of(model, 0)
    nodes = [weakref.ref(loss) for loss in losses.values() if loss is not None]
    monitor.watch(losses)
    del losses
    gc.collect()

    assert [node() for node in nodes] == [None] * 3
    kept: list[Tensor] = [*monitor.latest.gramians.values()]
    assert all(not one.requires_grad and one.dtype == torch.float64 for one in kept)


def test_the_experts_of_a_mixture_are_watched_and_its_gates_are_not() -> None:
    torch.manual_seed(0)
    model = MMoE(
        expert=lambda: nn.Linear(4, 3),
        n_experts=2,
        gate=lambda n: nn.Linear(4, n),
        heads={"click": nn.Linear(3, 1), "buy": nn.Linear(3, 1)},
    )
    monitor = ConflictMonitor(model)
    outputs = model(torch.randn(8, 4))
    monitor.watch({task: out.square().mean() for task, out in outputs.items()})

    owners = {name.rpartition(".")[0] for name, _ in model.named_parameters()}
    experts = {name for name in owners if "expert" in name}
    assert len(experts) == 2
    assert set(monitor.latest.cosines) == experts
