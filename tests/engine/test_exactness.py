"""`backward` against one `torch.autograd.grad` per loss, over models of many kinds."""

from typing import Any

import pytest
import torch
from torch import Tensor

from gradwright.engine import Backward, LossError, Weighting, backward
from tests.engine.methods import InverseNorms, Squashed, assert_gradients, inverse_norms, squashed
from tests.engine.models import hooked, layers, wide, wirings
from tests.engine.models.common import Build, Losses
from tests.reference.task_gradients import cosines_of, task_gradients, trainable, update_of

WIDE: dict[str, Build] = {f"wide, {name}": build for name, build in wide.MODELS.items()}
LINEAR: dict[str, Build] = layers.MODELS | hooked.LINEAR | wirings.MODELS | WIDE
linear_models = [pytest.param(build, id=name) for name, build in LINEAR.items()]
HOOKS_OF_NODES: dict[str, Build] = {
    "node hooks": hooked.NOT_LINEAR["node hooks"],
    **{f"wide, {name}": build for name, build in wide.HOOKED.items()},
}
HOOKS_OF_TENSORS = {n: build for n, build in hooked.NOT_LINEAR.items() if n not in HOOKS_OF_NODES}
other_models = [
    pytest.param(build, id=name) for name, build in (HOOKS_OF_TENSORS | HOOKS_OF_NODES).items()
]
routes = pytest.mark.parametrize(
    "memory", [pytest.param(2**30, id="rows kept"), pytest.param(0, id="rows dropped")]
)
EXACT: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12}


def forward(build: Build) -> tuple[list[Tensor], Losses]:
    """The same model and the same losses each time."""
    torch.manual_seed(0)
    model = build()
    return trainable(model.module), model.losses()


def check_gramian_method(build: Build, memory: int = 2**30, **near: Any) -> Backward:
    leaves, losses = forward(build)
    result = backward(losses, weighting=InverseNorms(), memory=memory)

    twins, twin_losses = forward(build)
    expected = task_gradients(list(twin_losses.values()), twins)
    gramian = expected.gramian()
    weights = inverse_norms(gramian)
    assert result.gramian is not None
    assert result.weights is not None
    assert result.cosines is not None
    torch.testing.assert_close(result.losses, torch.stack([*twin_losses.values()]).detach())
    torch.testing.assert_close(result.gramian, gramian, **near)
    torch.testing.assert_close(result.weights, weights, **near)
    torch.testing.assert_close(result.cosines, cosines_of(gramian), equal_nan=True, **near)
    combined = expected.combined(weights, torch.ones(len(weights)))
    assert_gradients(leaves, combined, **near)
    return result


def check_jacobian_method(build: Build, **near: Any) -> None:
    leaves, losses = forward(build)
    backward(losses, weighting=Squashed())

    twins, twin_losses = forward(build)
    expected = task_gradients(list(twin_losses.values()), twins)
    values = torch.stack([*twin_losses.values()]).detach()
    assert_gradients(leaves, update_of(expected, values, squashed), **near)


@pytest.mark.usefixtures("double")
@routes
@pytest.mark.parametrize("build", linear_models)
def test_gramian_method_is_exact(build: Build, memory: int) -> None:
    check_gramian_method(build, memory, **EXACT)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", other_models)
def test_gramian_method_is_exact_where_backward_is_not_linear(build: Build) -> None:
    check_gramian_method(build, **EXACT)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", [pytest.param(b, id=n) for n, b in HOOKS_OF_TENSORS.items()])
def test_dropped_rows_are_exact_where_backward_is_not_linear(build: Build) -> None:
    """Without the rows, Jᵀw takes a backward of its own: hooks that clip would act on the sum."""
    check_gramian_method(build, 0, **EXACT)


@pytest.mark.usefixtures("double")
def test_route_says_that_a_hook_is_not_linear() -> None:
    route = check_gramian_method(hooked.NOT_LINEAR["clipped in a branch"], 0, **EXACT).route

    assert route.name == "lean"
    assert "a hook is not linear" in route.why
    linear = check_gramian_method(hooked.LINEAR["reversed in a branch"], 0, **EXACT).route
    assert linear.name == "lean"
    assert "not linear" not in linear.why


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", HOOKS_OF_NODES.values(), ids=HOOKS_OF_NODES)
def test_dropped_rows_are_exact_or_refused_with_hooks_of_nodes(build: Build) -> None:
    """They cannot be seen, and a row may be made without its node."""
    leaves, losses = forward(build)
    try:
        result = backward(losses, weighting=InverseNorms(), memory=0)
    except LossError as error:
        assert "route='rows'" in str(error)
        assert all(leaf.grad is None for leaf in leaves)
    else:
        assert result.route.name == "rows"


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", [*linear_models, *other_models])
def test_jacobian_method_is_exact(build: Build) -> None:
    check_jacobian_method(build, **EXACT)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("build", [*linear_models, *other_models])
def test_sum_is_torchs_own_backward(build: Build) -> None:
    leaves, losses = forward(build)
    result = backward(losses)

    twins, twin_losses = forward(build)
    torch.stack([*twin_losses.values()]).sum().backward()
    assert result.route.name == "sum"
    expected = [None if twin.grad is None else twin.grad.to_dense() for twin in twins]
    assert_gradients(leaves, expected, **EXACT)


@routes
@pytest.mark.parametrize("name", ["batch norm", "LSTM", "transformer layer", "MMoE", "checkpoint"])
def test_float32_is_near(name: str, memory: int) -> None:
    """Same operations, other order of a few sums: some units in the last place."""
    check_gramian_method(LINEAR[name], memory, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("name", ["batch norm", "dropout", "MMoE", "convolution and batch norm"])
def test_rows_are_dropped_where_the_route_is_exact(name: str) -> None:
    assert check_gramian_method(LINEAR[name], 0, **EXACT).route.name == "lean"


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("method", [InverseNorms(), Squashed()], ids=["Gramian", "Jacobian"])
def test_running_statistics_stay(method: Weighting) -> None:
    torch.manual_seed(0)
    model = layers.MODELS["batch norm"]()
    losses = model.losses()
    before = {name: buffer.clone() for name, buffer in model.module.named_buffers()}
    backward(losses, weighting=method)

    for name, buffer in model.module.named_buffers():
        assert torch.equal(buffer, before[name])


@pytest.mark.parametrize("name", ["dropout", "checkpoint"])
def test_random_state_stays(name: str) -> None:
    torch.manual_seed(0)
    losses = LINEAR[name]().losses()
    before = torch.get_rng_state()
    backward(losses, weighting=InverseNorms())

    assert torch.equal(torch.get_rng_state(), before)
