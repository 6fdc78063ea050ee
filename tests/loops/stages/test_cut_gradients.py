"""The gradients that wait at a cut, that are given to it and asked from it; the graph's life."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad

from gradwright.loops.stages import cut
from tests.loops.bits import assert_same_bits, gradients, mlp

DTYPES = [torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "front",
    [lambda h: h.sum(1).exp(), lambda h: h.t() @ h, lambda h: h.permute(1, 0).reshape(-1).sin()],
    ids=["expanded", "transposed", "permuted"],
)
def test_waiting_and_given_gradients_keep_their_layout(front: Callable, dtype: torch.dtype) -> None:
    """`torch.autograd.grad` keeps the strides, a `.grad` has the leaf's; products round by them."""
    torch.manual_seed(0)
    encoder = nn.Sequential(mlp(96, 32), nn.Linear(32, 32)).to(dtype)
    batch = torch.randn(64, 96, dtype=dtype)
    front(encoder(batch)).mean().backward()
    expected = gradients(encoder)

    encoded = cut(encoder(batch))
    encoded.backward(torch.autograd.grad(front(encoded.value).mean(), encoded.value)[0])
    assert_same_bits(gradients(encoder), expected)

    encoded = cut(encoder(batch))
    front(encoded.value).mean().backward()
    encoded.backward()
    assert_same_bits(gradients(encoder), expected)


def test_grad_writes_nothing() -> None:
    torch.manual_seed(0)
    encoder, decoder, batch = mlp(4, 3), mlp(3, 2), torch.randn(5, 4)
    decoder(encoder(batch)).sum().backward()
    expected = gradients(encoder)
    encoded = cut(encoder(batch))
    decoder(encoded.value).sum().backward()

    found = encoded.grad(encoder.parameters())

    assert all(parameter.grad is None for parameter in encoder.parameters())
    assert encoded.waiting is None
    assert_same_bits(list(found), expected)


def test_grad_of_what_is_not_behind() -> None:
    encoder, other = mlp(4, 3), mlp(4, 3)
    encoded = cut(encoder(torch.ones(2, 4)))
    gradient = torch.ones(2, 3)

    with pytest.raises(RuntimeError, match="not have been used"):
        cut(encoder(torch.ones(2, 4))).grad(other.parameters(), gradient)
    assert encoded.grad(other.parameters(), gradient, allow_unused=True) == (None, None)


def test_inputs_limit_what_is_written() -> None:
    first, second = mlp(4, 4), mlp(4, 3)
    encoded = cut(second(first(torch.ones(2, 4))))
    encoded.value.sum().backward()
    encoded.backward(inputs=second.parameters())

    assert all(gradient is None for gradient in gradients(first))
    assert all(gradient is not None for gradient in gradients(second))


def test_waiting_adds_up_and_can_be_edited() -> None:
    inputs = torch.ones(2, requires_grad=True)
    value: dict[str, Any] = {"a": inputs * 2, "b": inputs * 3, "n": 1}
    encoded = cut(value)
    assert encoded.waiting == {"a": None, "b": None, "n": 1}
    for _ in range(2):
        encoded.value["a"].sum().backward()

    assert encoded.waiting["a"].tolist() == [2, 2]
    encoded.waiting["a"].mul_(0.25)
    encoded.backward()

    assert inputs.grad is not None
    assert inputs.grad.tolist() == [1, 1]
    assert encoded.waiting == {"a": None, "b": None, "n": 1}


def test_a_given_gradient_takes_the_place_of_what_waits() -> None:
    inputs = torch.ones(2, requires_grad=True)
    encoded = cut((inputs * 2, inputs * 3, 7))
    (encoded.value[0] + encoded.value[1]).sum().backward()
    encoded.backward((None, torch.tensor([1.0, 10.0]), None))
    left: tuple = encoded.waiting

    assert inputs.grad is not None
    assert inputs.grad.tolist() == [3, 30]
    assert left == (None, None, 7)


def test_one_gradient_for_a_tensor_that_occurs_twice() -> None:
    inputs = torch.ones(2, requires_grad=True)
    hidden = inputs * 2
    encoded = cut((hidden, hidden))
    loss = (encoded.value[0] * encoded.value[1]).sum()
    encoded.backward(torch.autograd.grad(loss, encoded.value))

    assert inputs.grad is not None
    assert inputs.grad.tolist() == [8, 8]


def test_gradients_of_torch_func() -> None:
    torch.manual_seed(0)
    encoder, decoder, batch = mlp(4, 3), mlp(3, 2), torch.randn(5, 4)
    decoder(encoder(batch)).sum().backward()
    expected = gradients(encoder)

    encoded = cut(encoder(batch))
    encoded.backward(grad(lambda hidden: decoder(hidden).sum())(encoded.value))

    assert_same_bits(gradients(encoder), expected)


def test_the_graph_behind_is_freed() -> None:
    nodes: list[weakref.ref] = []

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, hidden: Tensor) -> Tensor:
            ctx.held = nn.Identity()  # lives as long as the node
            nodes.append(weakref.ref(ctx.held))
            return hidden * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 2

    encoded = cut(Marked.apply(torch.ones(2, requires_grad=True)).sin())
    encoded.value.sum().backward()
    gc.collect()
    assert nodes[0]() is not None
    encoded.backward()
    gc.collect()

    assert nodes[0]() is None


def test_a_retained_graph_goes_on() -> None:
    inputs = torch.ones(2, requires_grad=True)
    encoded = cut(inputs**2)
    for step in (1, 2, 3):
        (step * encoded.value).sum().backward()
        encoded.backward(retain_graph=step < 3)

    assert inputs.grad is not None
    assert inputs.grad.tolist() == [12, 12]


def test_the_tensor_changes_hands_after_the_cut() -> None:
    """Torch gives a tensor that is written into another place in the graph; the cut stays."""
    inputs = torch.ones(2, requires_grad=True)
    hidden = inputs * 2
    encoded = cut(hidden, device="meta")
    hidden.mul_(50)
    encoded.backward(torch.ones(2))

    assert inputs.grad is not None
    assert inputs.grad.tolist() == [2, 2]
