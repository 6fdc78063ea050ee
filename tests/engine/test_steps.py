"""What changes from step to step: the tasks, their number; and lower precision on the way."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import backward
from tests.engine.methods import (
    Counting,
    InverseNorms,
    Squashed,
    assert_gradients,
    inverse_norms,
    squashed,
)
from tests.engine.models import layers
from tests.engine.models.common import Heads, Losses, Model, batch, mlp, of_trunk
from tests.reference.task_gradients import task_gradients, trainable, update_of

routes = pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])
METHODS = [
    pytest.param(None, id="sum"),
    pytest.param(Counting(), id="losses"),
    pytest.param(InverseNorms(), id="Gramian"),
    pytest.param(Squashed(), id="Jacobian"),
]


def simple(n_tasks: int = 3) -> Model:
    torch.manual_seed(0)
    trunk, heads, x = mlp(nn.Tanh()), Heads(n_tasks=n_tasks), batch()
    return Model(nn.ModuleList([trunk, heads]), lambda: heads(trunk(x)))


@pytest.mark.usefixtures("double")
@routes
@pytest.mark.parametrize("present", [(0, 1), (0, 2), (1,), (0, 1, 2)], ids=str)
def test_absent_tasks_are_as_if_never_there(present: tuple[int, ...], memory: int) -> None:
    model, twin = simple(), simple()
    losses: dict[str, Tensor | None] = {**model.losses()}
    for task in {0, 1, 2} - {*present}:
        losses[f"task{task}"] = None
    result = backward(losses, weighting=InverseNorms(), memory=memory)
    twin_losses = [loss for k, loss in enumerate(twin.losses().values()) if k in present]
    expected = task_gradients(twin_losses, trainable(twin.module))
    shared = (
        expected.shared if len(present) > 1 else [rows[0] is not None for rows in expected.rows]
    )
    gramian = expected.gramian(shared)
    weights = inverse_norms(gramian)

    assert result.gramian is not None
    assert result.weights is not None
    index = torch.tensor(present)
    torch.testing.assert_close(result.gramian[index[:, None], index], gramian)
    torch.testing.assert_close(result.weights[index], weights)
    assert int(result.gramian.isfinite().sum()) == len(present) ** 2
    assert int(result.losses.isfinite().sum()) == len(present)
    assert int(result.weights.count_nonzero()) == len(present)
    combined = expected.combined(weights, torch.ones(len(present)), shared)
    assert_gradients(trainable(model.module), combined)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("method", METHODS)
def test_absent_task_gives_its_head_no_gradient(method) -> None:
    model = simple()
    backward(model.losses() | {"task1": None}, weighting=method)
    _, heads = model.module

    assert [head.weight.grad is None for head in heads.heads] == [False, True, False]


@pytest.mark.usefixtures("double")
@routes
def test_number_of_tasks_may_change(memory: int) -> None:
    method = InverseNorms()
    for n_tasks in (2, 5, 1, 3):
        model, twin = simple(n_tasks), simple(n_tasks)
        result = backward([*model.losses().values()], weighting=method, memory=memory)
        expected = task_gradients([*twin.losses().values()], trainable(twin.module))
        shared = expected.shared if n_tasks > 1 else [True] * len(expected.rows)
        weights = inverse_norms(expected.gramian(shared))
        torch.testing.assert_close(result.weights, weights)
        combined = expected.combined(weights, torch.ones(n_tasks), shared)
        assert_gradients(trainable(model.module), combined)


@pytest.mark.usefixtures("double")
@routes
def test_forty_tasks(memory: int) -> None:
    model, twin = simple(40), simple(40)
    result = backward(model.losses(), weighting=InverseNorms(), memory=memory)
    expected = task_gradients([*twin.losses().values()], trainable(twin.module))

    torch.testing.assert_close(result.gramian, expected.gramian())
    weights = inverse_norms(expected.gramian())
    assert_gradients(trainable(model.module), expected.combined(weights, torch.ones(40)))


@routes
@pytest.mark.parametrize("name", ["batch norm", "transformer layer", "MMoE", "module called twice"])
def test_autocast_to_bfloat16(name: str, memory: int) -> None:
    """Against the twin under the same autocast: bfloat16 has 8 bits, sums in another order."""

    def forward() -> tuple[list[Tensor], list[Tensor]]:
        torch.manual_seed(0)
        model = layers.MODELS[name]()
        with torch.autocast("cpu", torch.bfloat16):
            return trainable(model.module), [loss.float() for loss in model.losses().values()]

    leaves, losses = forward()
    result = backward(losses, weighting=InverseNorms(), memory=memory)
    twins, twin_losses = forward()
    expected = task_gradients(twin_losses, twins)
    weights = inverse_norms(expected.gramian())

    near: dict[str, Any] = {"rtol": 2e-2, "atol": 2e-3}
    torch.testing.assert_close(result.gramian, expected.gramian(), **near)
    torch.testing.assert_close(result.weights, weights, **near)
    pairs = [
        (leaf.grad, wanted)
        for leaf, wanted in zip(
            leaves, expected.combined(weights, torch.ones(len(weights))), strict=True
        )
    ]
    assert all(found is not None and found.dtype == torch.float32 for found, _ in pairs)
    found, wanted = (
        torch.cat([part.flatten() for part in side]) for side in zip(*pairs, strict=True)
    )
    assert (found - wanted).norm() <= 2e-2 * wanted.norm()


@routes
@pytest.mark.parametrize("method", METHODS)
def test_scaled_gradients(method, memory: int) -> None:
    model, twin = simple(), simple()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    result = backward(model.losses(), weighting=method, scaler=scaler, memory=memory)
    plain = backward(twin.losses(), weighting=method, memory=memory)

    near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(result.losses, plain.losses)
    if plain.weights is not None:
        torch.testing.assert_close(result.weights, plain.weights, **near)
    if plain.gramian is not None:
        torch.testing.assert_close(result.gramian, plain.gramian, **near)
    expected = [leaf.grad * 2**12 for leaf in trainable(twin.module) if leaf.grad is not None]
    assert_gradients(trainable(model.module), expected, rtol=1e-4, atol=1e-6 * 2**12)


@pytest.mark.parametrize("method", METHODS)
def test_scaler_steps_after_scaled_gradients(method) -> None:
    model, twin = simple(), simple()
    for each, scaler in ((model, torch.amp.GradScaler("cpu")), (twin, None)):
        optimizer = torch.optim.SGD(each.module.parameters(), lr=0.1)
        backward(each.losses(), weighting=method, scaler=scaler)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()

    for mine, other in zip(model.module.parameters(), twin.module.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-6)


@routes
@pytest.mark.parametrize("method", METHODS)
def test_scaler_leaves_out_a_step_with_infinite_gradients(method, memory: int) -> None:
    model = simple()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    optimizer = torch.optim.SGD(model.module.parameters(), lr=0.1)
    before = [parameter.detach().clone() for parameter in model.module.parameters()]
    losses: Losses = model.losses()
    at_zero = (losses["task1"] - losses["task1"].detach()).clamp(min=0).sqrt()
    backward(losses | {"task1": at_zero}, weighting=method, scaler=scaler, memory=memory)
    scaler.step(optimizer)
    scaler.update()

    assert scaler.get_scale() == 2**11
    for was, parameter in zip(before, model.module.parameters(), strict=True):
        assert torch.equal(was, parameter)


def test_disabled_scaler_changes_nothing() -> None:
    model, twin = simple(), simple()
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    backward(model.losses(), weighting=InverseNorms(), scaler=scaler)
    backward(twin.losses(), weighting=InverseNorms())

    assert_gradients(trainable(model.module), [leaf.grad for leaf in trainable(twin.module)])


COMPILERS = [
    pytest.param("aot_eager", id="aot_eager"),
    pytest.param("inductor", id="inductor", marks=pytest.mark.slow),
]


@pytest.fixture
def compiler() -> Iterator[None]:
    """Forgotten afterwards: the doctor records no operations where anything was compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("backend", COMPILERS)
@pytest.mark.parametrize("part", ["layer", "trunk", "heads", "all"])
def test_compiled_blocks(backend: str, part: str) -> None:
    """Against the twin on the same model, compiled once."""
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4), nn.LayerNorm(4))
    model = of_trunk(mlp(nn.Tanh(), inner, nn.Tanh()), batch())
    trunk, heads = model.module
    match part:
        case "layer":
            trunk[2].compile(backend=backend)
        case "trunk":
            trunk.compile(backend=backend)
        case "heads":
            for head in heads.heads:
                head.compile(backend=backend)
    losses = torch.compile(model.losses, backend=backend) if part == "all" else model.losses
    leaves = trainable(model.module)
    torch.manual_seed(1)
    expected = task_gradients([*losses().values()], leaves)
    result = backward(losses(), weighting=InverseNorms())
    weights = inverse_norms(expected.gramian())

    near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(result.gramian, expected.gramian(), **near)
    assert_gradients(leaves, expected.combined(weights, torch.ones(3)), **near)
    model.module.zero_grad()
    values = result.losses
    backward(losses(), weighting=Squashed())
    assert_gradients(leaves, update_of(expected, values, squashed), **near)
