"""Losses that were joined into one tensor and taken out again run their own heads only."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gradwright.engine import backward
from tests.engine.methods import InverseNorms, assert_gradients, inverse_norms
from tests.engine.models.common import Heads, batch, mlp
from tests.reference.task_gradients import task_gradients, trainable

pytestmark = pytest.mark.usefixtures("double")
routes = pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
N_TASKS = 3
FACTORS = (2.0, 3.0, 0.5)

Join = Callable[[list[Tensor]], list[Tensor | None]]


class Counted(torch.autograd.Function):
    """The same values; counts its backward runs."""

    runs: list[int] = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x: Tensor, head: int) -> Tensor:
        ctx.head = head
        return x.clone()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        Counted.runs.append(ctx.head)
        return gradient, None


def stacked(losses: list[Tensor]) -> list[Tensor]:
    return [*torch.stack(losses)]


def by_index(losses: list[Tensor]) -> list[Tensor]:
    together = torch.stack(losses)
    return [together[index] for index in range(N_TASKS)]


def unbound(losses: list[Tensor]) -> list[Tensor]:
    return list(torch.stack(losses).unbind())


def concatenated(losses: list[Tensor]) -> list[Tensor]:
    return list(torch.cat([loss.reshape(1) for loss in losses]).split(1))


def written(losses: list[Tensor]) -> list[Tensor]:
    together = torch.zeros(N_TASKS)
    for index, loss in enumerate(losses):
        together[index] = loss
    return [together[index] for index in range(N_TASKS)]


def times_a_tensor(losses: list[Tensor]) -> list[Tensor]:
    together = torch.stack(losses) * torch.tensor(FACTORS)
    return [together[index] for index in range(N_TASKS)]


def written_then_times_a_tensor(losses: list[Tensor]) -> list[Tensor]:
    together = torch.zeros(N_TASKS)
    for index, loss in enumerate(losses):
        together[index] = loss
    weighted = torch.tensor(FACTORS) * together
    return [weighted[index] for index in range(N_TASKS)]


def times_after(losses: list[Tensor]) -> list[Tensor]:
    together = torch.stack(losses)
    return [together[index] * factor for index, factor in enumerate(FACTORS)]


def with_bypass(losses: list[Tensor]) -> list[Tensor]:
    together = torch.stack(losses[:2])
    return [together[0], together[1], losses[2]]


def part_bypasses(losses: list[Tensor]) -> list[Tensor]:
    """Each loss reaches its head past the joint as well, and once through it."""
    together = torch.stack(losses)
    return [together[index] + loss for index, loss in enumerate(losses)]


def stacked_twice(losses: list[Tensor]) -> list[Tensor]:
    return unbound(written(losses))


JOINS = [
    pytest.param(stacked, (1, 1, 1), id="stack, iterate"),
    pytest.param(by_index, (1, 1, 1), id="stack, index"),
    pytest.param(unbound, (1, 1, 1), id="stack, unbind"),
    pytest.param(concatenated, (1, 1, 1), id="cat, split"),
    pytest.param(written, (1, 1, 1), id="written by index"),
    pytest.param(times_a_tensor, FACTORS, id="stack, times a tensor"),
    pytest.param(written_then_times_a_tensor, FACTORS, id="written by index, times a tensor"),
    pytest.param(times_after, FACTORS, id="times after"),
    pytest.param(with_bypass, (1, 1, 1), id="one loss bypasses"),
    pytest.param(part_bypasses, (2, 2, 2), id="a part of each bypasses"),
    pytest.param(stacked_twice, (1, 1, 1), id="twice"),
]


def forward() -> tuple[list[Tensor], list[Tensor]]:
    torch.manual_seed(0)
    trunk, heads, x = mlp(torch.nn.Tanh()), Heads(), batch()
    features = trunk(x)
    losses = [heads.loss(task, Counted.apply(features, task)) for task in range(N_TASKS)]
    Counted.runs.clear()
    return [*trainable(trunk), *trainable(heads)], losses


@routes
@pytest.mark.parametrize(("join", "factors"), JOINS)
def test_each_head_runs_once_and_the_result_is_exact(
    join: Join, factors: tuple[float, ...], memory: int
) -> None:
    leaves, losses = forward()
    result = backward(join(losses), weighting=InverseNorms(), memory=memory)
    runs = [Counted.runs.count(head) for head in range(N_TASKS)]
    # A head may begin with a place that is cheap to keep; it then runs once more for the sum.
    assert runs == [1, 1, 1] if memory else max(runs) <= 2

    twins, twin_losses = forward()
    pairs = zip(factors, twin_losses, strict=True)
    expected = task_gradients([factor * loss for factor, loss in pairs], twins)
    weights = inverse_norms(expected.gramian())
    torch.testing.assert_close(result.gramian, expected.gramian())
    torch.testing.assert_close(result.weights, weights)
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


def test_one_tensor_of_all_losses() -> None:
    leaves, losses = forward()
    result = backward(torch.stack(losses), weighting=InverseNorms())
    assert sorted(Counted.runs) == [0, 1, 2]

    assert result.tasks == ("0", "1", "2")
    twins, twin_losses = forward()
    backward(twin_losses, weighting=InverseNorms())
    assert_gradients(leaves, [twin.grad for twin in twins])


def test_losses_that_depend_on_each_other_stay_exact() -> None:
    """A softmax over the losses: each of them needs all heads, and none is dropped."""
    leaves, losses = forward()
    together = torch.stack(losses)
    mixed = together.softmax(0) * together
    result = backward([*mixed], weighting=InverseNorms())

    twins, twin_losses = forward()
    twin_mixed = torch.stack(twin_losses)
    expected = task_gradients([*(twin_mixed.softmax(0) * twin_mixed)], twins)
    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


@routes
def test_absent_task_leaves_the_rest_apart(memory: int) -> None:
    leaves, losses = forward()
    together = torch.stack(losses)
    result = backward([together[0], None, together[2]], weighting=InverseNorms(), memory=memory)
    assert set(Counted.runs) == {0, 2}

    twins, twin_losses = forward()
    expected = task_gradients([twin_losses[0], twin_losses[2]], twins)
    weights = inverse_norms(expected.gramian())
    assert result.weights is not None
    torch.testing.assert_close(result.weights[[0, 2]], weights)
    for leaf, wanted in zip(leaves, expected.combined(weights, torch.ones(2)), strict=True):
        found = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        torch.testing.assert_close(found, torch.zeros_like(leaf) if wanted is None else wanted)


@routes
@pytest.mark.parametrize("join", [stacked, written], ids=["stack", "written by index"])
@pytest.mark.parametrize("dead", [[1], [0, 1], [0, 1, 2]], ids=["one", "all but one", "all"])
def test_losses_with_zero_weight_are_tasks_like_others(
    join: Join, dead: list[int], memory: int
) -> None:
    """A schedule that starts a task at 0: its gradient is zero, and is there."""
    factors = torch.tensor([0.0 if task in dead else 1.0 for task in range(N_TASKS)])
    leaves, losses = forward()
    joined = torch.stack([loss for loss in join(losses) if loss is not None]) * factors
    result = backward([*joined], weighting=InverseNorms(), memory=memory)

    twins, twin_losses = forward()
    pairs = zip(factors.tolist(), twin_losses, strict=True)
    expected = task_gradients([factor * loss for factor, loss in pairs], twins)
    weights = inverse_norms(expected.gramian())
    torch.testing.assert_close(result.gramian, expected.gramian())
    torch.testing.assert_close(result.weights, weights)
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


@routes
def test_hook_on_a_loss_before_the_joint_acts_once(memory: int) -> None:
    def hooked() -> tuple[list[Tensor], list[Tensor]]:
        leaves, losses = forward()
        for loss in losses:
            loss.register_hook(lambda gradient: gradient * 3)
        return leaves, losses

    leaves, losses = hooked()
    result = backward(stacked(losses), weighting=InverseNorms(), memory=memory)

    twins, twin_losses = hooked()
    expected = task_gradients(twin_losses, twins)
    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


@routes
def test_hook_on_the_joint_acts_once_per_loss(memory: int) -> None:
    def hooked() -> tuple[list[Tensor], list[Tensor]]:
        leaves, losses = forward()
        together = torch.stack(losses)
        together.register_hook(lambda gradient: gradient * torch.tensor(FACTORS))
        return leaves, [*together]

    leaves, losses = hooked()
    result = backward(losses, weighting=InverseNorms(), memory=memory)

    twins, twin_losses = forward()
    pairs = zip(FACTORS, twin_losses, strict=True)
    expected = task_gradients([factor * loss for factor, loss in pairs], twins)
    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)))


def test_forward_per_task_runs_once_each() -> None:
    """Without unstacking, each loss would run all three forwards backwards."""
    torch.manual_seed(0)
    trunk, heads = mlp(torch.nn.Tanh()), Heads()
    features = [Counted.apply(trunk(batch()), task) for task in range(N_TASKS)]
    losses = written([*heads(features).values()])
    Counted.runs.clear()
    backward(losses, weighting=InverseNorms())

    assert sorted(Counted.runs) == [0, 1, 2]
