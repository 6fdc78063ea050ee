"""How gradients are added to `.grad`: as `Tensor.backward` adds them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import Weighting, backward
from tests.engine.methods import Counting, InverseNorms, Squashed
from tests.engine.models.common import WIDTH, Heads, batch, mlp
from tests.engine.models.layers import Tokens

METHODS = [
    pytest.param(None, id="sum"),
    pytest.param(Counting(), id="losses"),
    pytest.param(InverseNorms(), id="Gramian"),
    pytest.param(Squashed(), id="Jacobian"),
]
every_method = pytest.mark.parametrize("weighting", METHODS)


def model(trunk: nn.Module | None = None) -> Any:
    torch.manual_seed(0)
    return nn.ModuleList([trunk or mlp(nn.Tanh()), Heads()])


def sparse_and_dense(*, sparse: bool = True) -> tuple[Any, Any]:
    """Two equal models; the second one's embedding has dense gradients."""
    first, second = model(Tokens(sparse=sparse)), model(Tokens(sparse=False))
    second.load_state_dict(first.state_dict())
    return first, second


def losses_of(parts: Any, x: Tensor) -> dict[str, Tensor]:
    trunk, heads = parts
    return heads(trunk(x))


def gradients(parts: nn.Module) -> list[Tensor]:
    found = [parameter.grad for parameter in parts.parameters()]
    assert all(gradient is not None for gradient in found)
    return [gradient for gradient in found if gradient is not None]


@every_method
def test_adds_in_place_to_what_is_there(weighting: Weighting | None) -> None:
    parts, x = model(), batch()
    backward(losses_of(parts, x), weighting=weighting)
    first = gradients(parts)
    copies = [gradient.clone() for gradient in first]
    backward(losses_of(parts, x), weighting=weighting)

    for before, copy, after in zip(first, copies, gradients(parts), strict=True):
        assert after is before
        torch.testing.assert_close(after, copy * 2)


@every_method
def test_sparse_stays_sparse_where_the_method_allows(weighting: Weighting | None) -> None:
    tokens = torch.randint(9, (6, 3))
    parts, twin = sparse_and_dense()
    for _ in range(2):
        backward(losses_of(parts, tokens), weighting=weighting)
        backward(losses_of(twin, tokens), weighting=weighting)
        gradient = parts[0].table.weight.grad
        assert gradient is not None
        assert gradient.is_sparse is not isinstance(weighting, Squashed)
        torch.testing.assert_close(gradient.to_dense(), twin[0].table.weight.grad)


@every_method
@pytest.mark.parametrize("before", ["dense", "sparse"])
def test_sparse_and_dense_add_up(weighting: Weighting | None, before: str) -> None:
    tokens = torch.randint(9, (6, 3))
    parts, twin = sparse_and_dense(sparse=before == "dense")
    start = torch.zeros(9, WIDTH)
    start[2] = 1
    parts[0].table.weight.grad = start.clone() if before == "dense" else start.to_sparse(1)
    twin[0].table.weight.grad = start.clone()
    backward(losses_of(parts, tokens), weighting=weighting)
    backward(losses_of(twin, tokens), weighting=weighting)

    torch.testing.assert_close(parts[0].table.weight.grad.to_dense(), twin[0].table.weight.grad)


@every_method
def test_hooks_that_wait_for_grad_run_once(weighting: Weighting | None) -> None:
    parts, seen = model(), []
    for parameter in parts.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: seen.append((id(p), p.grad.clone())))
    backward(losses_of(parts, batch()), weighting=weighting)

    assert sorted(key for key, _ in seen) == sorted(id(p) for p in parts.parameters())
    by_id = dict(seen)
    for parameter in parts.parameters():
        assert torch.equal(by_id[id(parameter)], parameter.grad)


@every_method
def test_a_hook_may_step_and_drop_the_gradient(weighting: Weighting | None) -> None:
    parts = model()
    before = [parameter.detach().clone() for parameter in parts.parameters()]

    def step(parameter: Tensor) -> None:
        assert parameter.grad is not None
        with torch.no_grad():
            parameter -= parameter.grad
        parameter.grad = None

    for parameter in parts.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    backward(losses_of(parts, batch()), weighting=weighting)

    for was, parameter in zip(before, parts.parameters(), strict=True):
        assert parameter.grad is None
        assert not torch.equal(was, parameter)


@every_method
def test_strides_are_those_of_the_parameter(weighting: Weighting | None) -> None:
    trunk = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Tanh(), nn.Flatten(), nn.Linear(16, WIDTH))
    parts = model(trunk.to(memory_format=torch.channels_last))  # type: ignore[call-overload]
    x = torch.randn(6, 3, 3, 3).to(memory_format=torch.channels_last)
    backward(losses_of(parts, x), weighting=weighting)

    for parameter in parts.parameters():
        assert parameter.grad is not None
        assert parameter.grad.stride() == parameter.stride()


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_dtype_is_that_of_the_parameter(weighting: Weighting | None, dtype: torch.dtype) -> None:
    parts = model().to(dtype)
    backward(losses_of(parts, batch().to(dtype)), weighting=weighting)

    for parameter in parts.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == dtype


@every_method
def test_parameters_of_two_dtypes(weighting: Weighting | None) -> None:
    parts = model()
    parts[0][2].double()

    def losses() -> dict[str, Tensor]:
        hidden = parts[0][1](parts[0][0](batch()))
        return parts[1](parts[0][2](hidden.double()).float())

    backward(losses(), weighting=weighting)

    for parameter in parts.parameters():
        assert parameter.grad is not None
        assert parameter.grad.dtype == parameter.dtype


@every_method
def test_gradients_share_no_memory(weighting: Weighting | None) -> None:
    """Two biases that are added get one and the same gradient from autograd."""
    first, second = (nn.Parameter(torch.zeros(WIDTH)) for _ in range(2))
    parts = model()
    trunk, heads = parts
    backward(heads(trunk(batch()) + (first + second)), weighting=weighting)
    leaves = [first, second, *parts.parameters()]

    assert len({leaf.grad.data_ptr() for leaf in leaves if leaf.grad is not None}) == len(leaves)


@every_method
def test_frozen_and_unused_parameters_get_none(weighting: Weighting | None) -> None:
    parts, unused = model(), nn.Linear(2, 2)
    parts[0][0].requires_grad_(False)
    backward(losses_of(parts, batch()), weighting=weighting)

    assert all(p.grad is None for p in (*parts[0][0].parameters(), *unused.parameters()))


@every_method
def test_works_without_grad_mode(weighting: Weighting | None) -> None:
    """As `Tensor.backward` does."""
    parts = model()
    losses = losses_of(parts, batch())
    with torch.no_grad():
        backward(losses, weighting=weighting)

    assert gradients(parts)


@every_method
def test_results_carry_no_graph(weighting: Weighting | None) -> None:
    result = backward(losses_of(model(), batch()), weighting=weighting)

    for value in (result.losses, result.weights, result.gramian, result.cosines):
        assert value is None or not value.requires_grad
