"""Heads so small that the cut lies above them: they run in step with the trunk."""

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.engine.routes.choice import RouteName
from gradwright.engine.weights.heads import Heads
from gradwright.weighting import UPGrad

SIZES = [(4, 6, 3), (2, 5, 2), (16, 6, 3), (1, 4, 4), (8, 32, 5)]  # batch, width, tasks


class Model(nn.Module):
    def __init__(self, width: int, n_tasks: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width))
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(n_tasks))

    def losses(self, x: Tensor) -> list[Tensor]:
        features = self.trunk(x).tanh()
        return [(head(features) - task).square().mean() for task, head in enumerate(self.heads)]


@pytest.mark.parametrize("heads", ["weighted", "unweighted"])
@pytest.mark.parametrize(("batch", "width", "n_tasks"), SIZES)
def test_lean_is_exact(batch: int, width: int, n_tasks: int, heads: Heads) -> None:
    torch.manual_seed(0)
    model = Model(width, n_tasks).double()
    x = torch.randn(batch, 3, dtype=torch.float64)
    found = {}
    routes: tuple[RouteName, RouteName] = ("rows", "lean")
    for route in routes:
        model.zero_grad()
        step = gw.backward(model.losses(x), weighting=UPGrad(), heads=heads, route=route)
        assert step.route.name == route and step.gramian is not None
        found[route] = [step.gramian, *(p.grad for p in model.parameters())]

    for mine, other in zip(found["lean"], found["rows"], strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)
