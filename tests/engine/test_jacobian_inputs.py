"""`jacobian` where its inputs sit at odd places of the graph: against torch, loss by loss."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import jacobian
from tests.engine.models.common import Heads, batch, mlp

pytestmark = pytest.mark.usefixtures("double")
Case = tuple[list[Tensor], list[Tensor]]


def parts() -> tuple[nn.Sequential, Tensor, list[Tensor]]:
    torch.manual_seed(0)
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    features = trunk(x)
    return trunk, features, [*heads(features).values()]


def stacked_losses() -> Case:
    _, _, losses = parts()
    together = torch.stack(losses)
    return [*(together * torch.tensor([2.0, 3.0, 4.0]))], [together]


def single_losses_before_the_joint() -> Case:
    _, _, losses = parts()
    return [*torch.stack(losses)], losses[:1]


def features() -> Case:
    _, found, losses = parts()
    return [*torch.stack(losses)], [found]


def a_loss_itself() -> Case:
    _, _, losses = parts()
    return losses, [losses[1]]


def features_and_a_parameter() -> Case:
    trunk, found, losses = parts()
    return losses, [found, *trunk.parameters()]


def one_behind_another() -> Case:
    trunk, _, _ = parts()
    first = trunk[0](batch())
    second = trunk[2](first.tanh())
    return [second.sum(), second.square().sum() + first.sum()], [first, second, trunk[0].weight]


CASES = {
    "the joint of all losses": stacked_losses,
    "a loss before the joint": single_losses_before_the_joint,
    "features": features,
    "a loss itself": a_loss_itself,
    "features and a parameter": features_and_a_parameter,
    "one behind another": one_behind_another,
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in CASES.items()])
def test_rows_are_torchs(make: Callable[[], Case]) -> None:
    losses, inputs = make()
    expected = [
        torch.autograd.grad(loss, inputs, retain_graph=True, materialize_grads=True)
        for loss in losses
    ]
    found = jacobian(losses, inputs)

    for rows, wanted in zip(found, zip(*expected, strict=True), strict=True):
        torch.testing.assert_close(rows, torch.stack(wanted))
