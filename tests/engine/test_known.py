"""Steps whose weights are known from earlier ones: one backward, and the same gradients."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from gradwright.engine import TaskMismatch, Weighting, backward
from gradwright.weighting import Every, MoDo, NashMTL
from tests.engine.methods import InverseNorms, assert_gradients, inverse_norms
from tests.engine.models import hooked, layers, wide, wirings
from tests.engine.models.common import Build, Heads, Model, batch, mlp
from tests.engine.refusal import Step
from tests.engine.test_freed import boxed
from tests.reference.task_gradients import task_gradients, trainable

MODELS: dict[str, Build] = layers.MODELS | hooked.LINEAR | wirings.MODELS | wide.MODELS
models = pytest.mark.parametrize("build", [pytest.param(b, id=name) for name, b in MODELS.items()])
models_that_free = pytest.mark.parametrize(
    "build", [pytest.param(b, id=name) for name, b in MODELS.items() if "checkpoint" not in name]
)  # checkpoints bring hooks of their own for saved tensors
rules = pytest.mark.parametrize("heads", ["unweighted", "weighted", "mean", "log"])


def forward(build: Build, seed: int) -> tuple[Model, dict[str, Tensor]]:
    """The same model each time; the batch and its randomness differ by the seed."""
    torch.manual_seed(0)
    model = build()
    torch.manual_seed(seed)
    return model, model.losses()


def factors(rule: str, weights: Tensor, losses: Tensor) -> Tensor:
    ones = torch.ones_like(weights)
    return {"weighted": weights, "mean": ones / len(ones), "log": ones / losses}.get(rule, ones)


def positive(losses: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: loss.exp() for name, loss in losses.items()}


def second_step(
    weighting: Weighting, build: Build, **arguments: Any
) -> tuple[Model, Any, Weighting]:
    """A step that solves, and one that does not."""
    model, losses = forward(build, 1)
    backward(positive(losses), weighting=weighting, **arguments)
    model, losses = forward(build, 2)
    result = backward(positive(losses), weighting=weighting, **arguments)
    return model, result, weighting


@pytest.mark.usefixtures("double")
@rules
@models
def test_gradients_are_those_of_the_kept_weights(build: Build, heads: str) -> None:
    n = len(forward(build, 1)[1])
    model, result, _ = second_step(Every(InverseNorms(), n, 2), build, heads=heads)

    _, twin_losses = forward(build, 1)
    twins = trainable(forward(build, 1)[0].module)
    twin, twin_losses = forward(build, 1)
    first = task_gradients([*positive(twin_losses).values()], trainable(twin.module))
    weights = inverse_norms(first.gramian())
    twin, twin_losses = forward(build, 2)
    twins = trainable(twin.module)
    losses = positive(twin_losses)
    second = task_gradients([*losses.values()], twins)
    values = torch.stack([*losses.values()]).detach()
    expected = second.combined(weights, factors(heads, weights, values))
    assert result.route.name == "known"
    assert result.gramian is None
    torch.testing.assert_close(result.weights, weights)
    assert_gradients(trainable(model.module), expected, rtol=1e-8, atol=1e-11)


def simple() -> Model:
    trunk, heads, x = mlp(nn.Linear(4, 4), nn.Tanh()), Heads(), batch()
    return Model(nn.ModuleList([trunk, heads]), lambda: heads(trunk(x)))


def test_route_says_why() -> None:
    _, result, _ = second_step(Every(InverseNorms(), 3, 2), simple)

    assert str(result.route) == (
        "known (approximate): Every has kept its weights of an earlier step: one backward "
        "of their sum"
    )


def test_reentrant_checkpoints_take_one_backward_per_task_and_say_so() -> None:
    def build() -> Model:
        first, trunk, heads, x = nn.Linear(5, 5), mlp(nn.Tanh()), Heads(), batch()
        return Model(
            nn.ModuleList([first, trunk, heads]),
            lambda: heads(checkpoint(trunk, first(x), use_reentrant=True)),
        )

    every, twin = Every(InverseNorms(), 3, 2), Every(InverseNorms(), 3, 2)
    model, result, _ = second_step(every, build)
    backward(positive(forward(build, 1)[1]), weighting=twin)
    plain, losses = forward(build, 2)
    weights = twin.known_weights(torch.ones(3))
    assert weights is not None
    values = positive(losses)
    torch.stack(
        [w * loss for w, loss in zip(weights, values.values(), strict=True)]
    ).sum().backward()

    assert "reentrant checkpoints take one per task" in result.route.why
    shared = [trainable(each.module[:2]) for each in (model, plain)]
    assert_gradients(shared[0], [leaf.grad for leaf in shared[1]], rtol=1e-4, atol=1e-6)


def flops(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_one_backward_through_the_trunk() -> None:
    """With heads of their own factor these run once more, the trunk does not."""
    trunk, heads = nn.Sequential(*(nn.Linear(64, 64) for _ in range(4))), Heads(64)
    every, x = Every(InverseNorms(), 3, 2), torch.randn(8, 64)
    backward(heads(trunk(x)), weighting=every, heads="unweighted")
    losses, again = heads(trunk(x)), heads(trunk(x))
    known = flops(lambda: backward(losses, weighting=every, heads="unweighted"))
    plain = flops(lambda: backward(again))

    assert known <= 1.1 * plain


@pytest.mark.parametrize("heads", ["unweighted", "weighted"])
@models_that_free
def test_nothing_outlives_the_call(build: Build, heads: str) -> None:
    losses = forward(build, 0)[1]
    every = Every(InverseNorms(), len(losses), 2)
    backward(losses, weighting=every)
    torch.manual_seed(0)
    model = build()
    with boxed() as alive:
        losses = model.losses()
    assert alive
    route = backward(losses, weighting=every, heads=heads).route  # type: ignore[arg-type]

    assert route.name == "known"
    assert not alive


@pytest.mark.parametrize("heads", ["unweighted", "weighted"])
def test_kept_graph_gives_the_same_again(heads: str) -> None:
    every, model = Every(InverseNorms(), 3, 5), simple()
    backward(model.losses(), weighting=every)
    model.module.zero_grad()
    losses = model.losses()
    backward(losses, weighting=every, heads=heads, retain_graph=True)  # type: ignore[arg-type]
    first = [leaf.grad.clone() for leaf in trainable(model.module) if leaf.grad is not None]
    model.module.zero_grad()
    backward(losses, weighting=every, heads=heads)  # type: ignore[arg-type]

    assert_gradients(trainable(model.module), first)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("heads", ["weighted", "unweighted"])
def test_nash_mtl_clips_the_update_in_between(heads: str) -> None:
    """The gradient of the second step is longer; its update is not."""
    build = layers.MODELS["batch norm"]
    nash, free = NashMTL(3, max_norm=0.5, update_every=2), NashMTL(3, update_every=2)
    model, result, _ = second_step(nash, build, heads=heads)
    unclipped, other, _ = second_step(free, build, heads=heads)
    leaves, longer = trainable(model.module), trainable(unclipped.module)
    shared = [leaf for leaf in trainable(model.module[0])]
    length = float(torch.cat([leaf.grad.flatten() for leaf in shared]).norm())  # type: ignore[union-attr]
    ratio = float(result.weights[0] / other.weights[0])

    assert length == pytest.approx(0.5)
    assert ratio < 1
    torch.testing.assert_close(result.weights, other.weights * ratio)
    for leaf, other_leaf in zip(leaves, longer, strict=True):
        common = any(leaf is one for one in shared)
        factor = ratio if common or heads == "weighted" else 1.0
        torch.testing.assert_close(leaf.grad, other_leaf.grad * factor)  # type: ignore[operator]


def test_scaled_gradients() -> None:
    grads = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=2.0**12)):
        nash = NashMTL(3, max_norm=0.1, update_every=2)
        model, result, _ = second_step(nash, simple, scaler=scaler)
        grads.append([leaf.grad for leaf in trainable(model.module)])
    expected = [grad * 2**12 for grad in grads[0] if grad is not None]
    assert_gradients(trainable(model.module), expected, rtol=1e-4, atol=1e-3)
    assert result.route.name == "known"


@pytest.mark.usefixtures("double")
def test_absent_task_keeps_its_weight() -> None:
    every = Every(InverseNorms(), 3, 2)
    first = backward(forward(simple, 1)[1], weighting=every).weights
    assert first is not None
    model, losses = forward(simple, 2)
    result = backward(losses | {"task1": None}, weighting=every)
    twin, twin_losses = forward(simple, 2)
    expected = task_gradients([twin_losses["task0"], twin_losses["task2"]], trainable(twin.module))

    assert result.route.name == "known"
    assert result.weights is not None
    assert result.weights.tolist() == pytest.approx([float(first[0]), 0, float(first[2])])
    weights = first[[0, 2]]
    assert_gradients(trainable(model.module), expected.combined(weights, torch.ones(2)))


def test_a_task_without_weights_is_asked_for_at_once() -> None:
    every = Every(InverseNorms(), 3, 100)
    _, losses = forward(simple, 1)
    backward(losses | {"task1": None}, weighting=every)

    assert backward(forward(simple, 2)[1], weighting=every).route.name == "rows"
    assert backward(forward(simple, 3)[1], weighting=every).route.name == "known"


@pytest.mark.parametrize("method", [Every(InverseNorms(), 2, 5), NashMTL(2, update_every=5)])
def test_another_number_of_tasks_is_refused(method: Weighting) -> None:
    Step().refused(TaskMismatch, ["for 2 tasks"], weighting=method)


def test_other_batches_are_not_needed_in_between() -> None:
    every = Every(MoDo(3), 3, 2)
    trunk, heads = mlp(nn.Tanh()), Heads()
    for step in range(4):
        losses = [heads(trunk(batch())) for _ in range(3 if every.due else 1)]
        route = backward(losses[0], weighting=every, other=losses[1:]).route
        assert route.name == ("known" if step % 2 else "batches")


def test_a_saved_state_goes_on_to_the_bit() -> None:
    every, fresh = Every(InverseNorms(), 3, 3), Every(InverseNorms(), 3, 3)
    backward(forward(simple, 1)[1], weighting=every)
    fresh.load_state_dict(every.state_dict())
    for seed in range(4):
        one, losses = forward(simple, seed)
        mine = backward(losses, weighting=every)
        other, losses = forward(simple, seed)
        theirs = backward(losses, weighting=fresh)
        assert mine.route == theirs.route
        for a, b in zip(trainable(one.module), trainable(other.module), strict=True):
            assert a.grad is not None and b.grad is not None
            assert torch.equal(a.grad, b.grad)


@pytest.mark.usefixtures("double")
def test_error_is_measured_where_asked_for() -> None:
    measured, silent = (Every(InverseNorms(), 3, 2, measure_error=on) for on in (True, False))
    build = layers.MODELS["batch norm"]
    model, result, _ = second_step(measured, build)
    other, quiet, _ = second_step(silent, build)
    twin, losses = forward(build, 2)
    gradients = task_gradients([*positive(losses).values()], trainable(twin.module))
    w = inverse_norms(gradients.gramian())
    exact, found = (
        torch.cat([g.flatten() for g in gradients.combined(each, each * 0) if g is not None])
        for each in (w, result.weights)
    )

    assert quiet.route.error is None
    error = result.route.error
    assert error is not None and error.gramian is None
    assert error.update == pytest.approx(float((found - exact).norm() / exact.norm()))
    assert error.cosine == pytest.approx(float(torch.cosine_similarity(found, exact, 0)))
    assert_gradients(trainable(model.module), [leaf.grad for leaf in trainable(other.module)])
    assert measured.state_dict().keys() == silent.state_dict().keys()


@pytest.mark.usefixtures("double")
def test_shared_parameters_that_are_given_have_the_kept_weights() -> None:
    torch.manual_seed(0)
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    first = [*trunk[0].parameters()]
    every = Every(InverseNorms(), 3, 2)
    backward(heads(trunk(x)), weighting=every, shared=first)
    for part in (trunk, heads):
        part.zero_grad()
    result = backward(heads(trunk(x)), weighting=every, shared=iter(first))
    leaves = [*trunk.parameters(), *heads.parameters()]
    expected = task_gradients([*heads(trunk(x)).values()], leaves)

    assert result.route.name == "known"
    assert result.weights is not None
    inside = [any(leaf is one for one in first) for leaf in leaves]
    assert_gradients(leaves, expected.combined(result.weights, torch.ones(3), inside))
