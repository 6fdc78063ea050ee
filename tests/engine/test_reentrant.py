"""Checkpoints with `use_reentrant=True`: against the same model with `use_reentrant=False`.

The twin cannot read them: such a checkpoint refuses `torch.autograd.grad`.
"""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gradwright.engine import LossError, Weighting, backward
from tests.engine.methods import (
    Counting,
    InverseNorms,
    Squashed,
    assert_gradients,
    inverse_norms,
    squashed,
)
from tests.engine.models.common import Losses, Model
from tests.engine.models.wirings import CHECKPOINTED
from tests.engine.test_freed import boxed
from tests.reference.task_gradients import TaskGradients, task_gradients, trainable, update_of

pytestmark = pytest.mark.usefixtures("double")
every_model = pytest.mark.parametrize("name", CHECKPOINTED)
METHODS = [
    pytest.param(None, id="sum"),
    pytest.param(Counting(), id="losses"),
    pytest.param(InverseNorms(), id="Gramian"),
    pytest.param(Squashed(), id="Jacobian"),
]
every_method = pytest.mark.parametrize("weighting", METHODS)


def forward(name: str, *, use_reentrant: bool = True) -> tuple[Model, list[Tensor], Losses]:
    torch.manual_seed(0)
    model = CHECKPOINTED[name](use_reentrant=use_reentrant)
    return model, trainable(model.module), model.losses()


def expected_of(name: str) -> tuple[TaskGradients, Tensor]:
    _, twins, losses = forward(name, use_reentrant=False)
    values = torch.stack([*losses.values()]).detach()
    return task_gradients([*losses.values()], twins), values


@every_model
@pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
def test_gramian_method_is_exact(name: str, memory: int) -> None:
    _, leaves, losses = forward(name)
    result = backward(losses, weighting=InverseNorms(), memory=memory)

    expected, _ = expected_of(name)
    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    torch.testing.assert_close(result.weights, weights)
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


@every_model
def test_jacobian_method_is_exact(name: str) -> None:
    _, leaves, losses = forward(name)
    backward(losses, weighting=Squashed())

    expected, values = expected_of(name)
    assert_gradients(leaves, update_of(expected, values, squashed))


@every_model
@every_method
def test_adds_to_what_is_there(name: str, weighting: Weighting | None) -> None:
    _, leaves, losses = forward(name)
    backward(losses, weighting=weighting)
    once = [leaf.grad.clone() for leaf in leaves if leaf.grad is not None]
    _, again, losses = forward(name)
    before = [torch.randn_like(leaf) for leaf in again]
    for leaf, start in zip(again, before, strict=True):
        leaf.grad = start.clone()
    backward(losses, weighting=weighting)

    assert_gradients(again, [a + b for a, b in zip(before, once, strict=True)])


@every_model
@every_method
def test_nothing_outlives_the_call(name: str, weighting: Weighting | None) -> None:
    torch.manual_seed(0)
    model = CHECKPOINTED[name](use_reentrant=True)
    with boxed() as alive:
        losses = model.losses()
    assert alive
    backward(losses, weighting=weighting)

    assert not alive


@every_model
@every_method
def test_kept_graph_gives_the_same_again(name: str, weighting: Weighting | None) -> None:
    model, leaves, losses = forward(name)
    backward(losses, weighting=weighting, retain_graph=True)
    once = [leaf.grad.clone() for leaf in leaves if leaf.grad is not None]
    model.module.zero_grad()
    backward(losses, weighting=weighting)

    assert_gradients(leaves, once)


@every_model
def test_stacked_losses_are_taken_apart(name: str) -> None:
    _, leaves, losses = forward(name)
    together = torch.zeros(3)
    for index, loss in enumerate(losses.values()):
        together[index] = loss
    result = backward([together[index] for index in range(3)], weighting=InverseNorms())

    expected, _ = expected_of(name)
    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


class Failing(torch.autograd.Function):
    """Raises in backward, from its second run on."""

    runs = 0

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        Failing.runs += 1
        if Failing.runs > 1:
            raise ZeroDivisionError
        return gradient


def test_gradients_are_put_back_after_an_error() -> None:
    first, trunk = nn.Linear(3, 3), nn.Linear(3, 3)
    leaves = [*first.parameters(), *trunk.parameters()]
    before = [torch.randn_like(leaf) for leaf in leaves]
    for leaf, start in zip(leaves, before, strict=True):
        leaf.grad = start.clone()
    features = checkpoint(trunk, Failing.apply(first(torch.randn(2, 3))), use_reentrant=True)
    Failing.runs = 0
    with pytest.raises(ZeroDivisionError):
        backward([features.sum(), features.square().sum()], weighting=InverseNorms())

    assert_gradients(leaves, before)
    assert torch.autograd.backward.__name__ == "backward"


def test_hook_that_waits_for_grad_is_refused() -> None:
    """It would run once per loss, on the gradient of one loss."""
    model, leaves, losses = forward("checkpoint")
    _, trunk, _ = model.module
    seen: list[Tensor] = []
    trunk[0].weight.register_post_accumulate_grad_hook(seen.append)
    with pytest.raises(LossError, match="use_reentrant=False"):
        backward(losses, weighting=InverseNorms())

    assert not seen
    assert all(leaf.grad is None for leaf in leaves)
