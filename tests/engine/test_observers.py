"""Hooks that only look see one gradient per loss, as with one backward per loss."""

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import Weighting, backward
from tests.engine.methods import InverseNorms, Squashed
from tests.engine.models.common import Heads, batch, mlp

pytestmark = pytest.mark.usefixtures("double")
routes = pytest.mark.parametrize(
    ("weighting", "memory"),
    [
        pytest.param(InverseNorms(), 2**30, id="Gramian, rows kept"),
        pytest.param(InverseNorms(), 0, id="Gramian, rows dropped"),
        pytest.param(Squashed(), 2**30, id="Jacobian"),
    ],
)


def forward() -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(0)
    features = mlp(nn.Tanh())(batch())
    return features, [*Heads()(features).values()]


def expected() -> list[Tensor]:
    features, losses = forward()
    return [torch.autograd.grad(loss, features, retain_graph=True)[0] for loss in losses]


@routes
def test_retained_gradient_is_the_sum_over_losses(weighting: Weighting, memory: int) -> None:
    features, losses = forward()
    features.retain_grad()
    backward(losses, weighting=weighting, memory=memory)

    torch.testing.assert_close(features.grad, torch.stack(expected()).sum(0))


@routes
def test_logged_norms_are_those_of_each_loss(weighting: Weighting, memory: int) -> None:
    """Freeing what is left may send zeros along; a gradient is not seen twice."""
    features, losses = forward()
    norms: list[Tensor] = []
    features.register_hook(lambda gradient: norms.append(gradient.norm()))
    backward(losses, weighting=weighting, memory=memory)

    seen = torch.stack([norm for norm in norms if norm > 0])
    torch.testing.assert_close(seen, torch.stack([row.norm() for row in expected()]))
