"""A cut graph gives the gradients of one graph, to the last bit, whatever was cut."""

import copy
import io
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from gradwright.loops.stages import Cut, cut
from tests.loops.bits import assert_same_bits, gradients, mlp

Halves = namedtuple("Halves", "left right")


@dataclass(frozen=True)
class Encoded:
    """What an encoder may return: tensors with a graph, and things without one."""

    hidden: Tensor
    states: list
    mask: Tensor
    length: int
    nothing: None = None


STRUCTURES: dict[str, tuple[Callable, Callable]] = {
    "tensor": (lambda h: h, lambda v: v),
    "tuple": (lambda h: (h, h.tanh()), lambda v: v[0] + 2 * v[1]),
    "namedtuple": (lambda h: Halves(*h.chunk(2, dim=1)), lambda v: v.left * v.right.exp()),
    "dict": (lambda h: {"a": {"b": [h, h.sin()]}}, lambda v: v["a"]["b"][0] * v["a"]["b"][1]),
    "dataclass": (
        lambda h: Encoded(h, [h.exp(), h.sin()], h > 0, len(h)),
        lambda v: (v.hidden * v.states[0] + v.states[1]).where(v.mask, v.hidden) / v.length,
    ),
    "one tensor three times": (lambda h: [h, h, {"a": h}], lambda v: v[0] * v[1] + v[2]["a"]),
    "views of one tensor": (lambda h: h.split(2, dim=1), lambda v: torch.cat(v, dim=1)),
    "a part that nobody uses": (lambda h: (h, h.tanh()), lambda v: v[0].square()),
    "used twice behind": (lambda h: h, lambda v: v.sin() * v + v),
    "a view": (lambda h: h.t(), lambda v: v.t()),
    "complex": (lambda h: torch.complex(h, h.sin()), lambda v: (v * v).abs()),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_equals_one_graph(structure: str, dtype: torch.dtype) -> None:
    pack, unpack = STRUCTURES[structure]
    torch.manual_seed(0)
    encoder, batch = mlp(5, 8, 6).to(dtype), torch.randn(7, 5, dtype=dtype)
    decoder = nn.Linear(unpack(pack(encoder(batch))).shape[1], 2, dtype=dtype)

    decoder(unpack(pack(encoder(batch)))).square().mean().backward()
    expected = gradients(encoder, decoder)
    encoded = cut(pack(encoder(batch)))
    decoder(unpack(encoded.value)).square().mean().backward()
    assert all(parameter.grad is None for parameter in encoder.parameters())
    encoded.backward()

    assert type(encoded.value) is type(pack(encoder(batch)))
    assert_same_bits(gradients(encoder, decoder), expected)


def test_what_has_no_graph_goes_through() -> None:
    hidden, mask = torch.ones(2, requires_grad=True) * 2, torch.tensor([True, False])
    value: dict[str, Any] = {"hidden": hidden, "mask": mask, "steps": [1, None]}
    front = cut(value).value

    assert front["mask"] is mask
    assert front["steps"] == [1, None]
    assert front["hidden"].is_leaf and front["hidden"].requires_grad
    assert torch.equal(front["hidden"], hidden)


def test_nothing_is_copied_and_the_graph_behind_is_as_it_was() -> None:
    hidden = torch.ones(2, requires_grad=True) * 2
    value = cut(hidden).value

    assert value.data_ptr() == hidden.data_ptr()
    assert not hidden._backward_hooks and hidden.grad_fn is not None


LAYOUTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "expanded": lambda hidden, weight: (hidden.sum(2) @ weight).square().sum(),
    "permuted": lambda hidden, weight: (hidden.permute(2, 0, 1) @ weight).square().sum(),
    "as it was": lambda hidden, weight: (weight.t() @ hidden).square().sum(),
}


@pytest.mark.parametrize("loss_of", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_gradient_keeps_the_layout_in_which_it_arrives(
    dtype: torch.dtype, loss_of: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Torch stores it in the layout of the leaf, and a sum over that rounds otherwise."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(257, 65), nn.Tanh(), nn.Linear(65, 65)).to(dtype)
    x, weight = torch.randn(5, 128, 257, dtype=dtype), torch.randn(128, 9, dtype=dtype)

    whole = torch.autograd.grad(loss_of(encoder(x), weight), list(encoder.parameters()))
    encoded = cut(encoder(x))
    loss_of(encoded.value, weight).backward()
    encoded.backward()

    for parameter, gradient in zip(encoder.parameters(), whole, strict=True):
        assert parameter.grad is not None and torch.equal(parameter.grad, gradient)


def test_an_edited_gradient_is_sent_as_edited() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    encoded = cut(weight * 2)
    encoded.value.sum().backward()  # an expanded gradient
    assert encoded.value.grad is not None
    encoded.value.grad.mul_(10)
    encoded.backward()

    assert weight.grad is not None and weight.grad.eq(20).all()


def test_a_tensor_that_occurs_twice_stays_one() -> None:
    hidden = torch.ones(2, requires_grad=True) * 2
    encoded = cut((hidden, [hidden]))

    assert encoded.value[0] is encoded.value[1][0]


def test_the_value_is_a_parameter() -> None:
    """Nothing lies behind but the parameter itself, which an optimizer may write into meanwhile."""
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    encoded = cut(weight)
    (encoded.value**2).sum().backward()
    with torch.no_grad():
        weight.add_(1)
    assert weight.grad is None
    encoded.backward(retain_graph=True)
    (3 * encoded.value).sum().backward()
    encoded.backward()

    assert weight.grad is not None
    assert weight.grad.tolist() == [2 + 3, 4 + 3]


def test_a_parameter_on_both_sides() -> None:
    torch.manual_seed(0)
    layer, batch = nn.Linear(4, 4), torch.randn(3, 4)
    layer(layer(batch).tanh()).square().sum().backward()
    expected = gradients(layer)

    encoded = cut(layer(batch).tanh())
    layer(encoded.value).square().sum().backward()
    encoded.backward()

    assert_same_bits(gradients(layer), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    encoder, decoder, batch = mlp(6, 8, 6), mlp(6, 2), torch.randn(5, 6)
    with torch.autocast("cpu", dtype):
        decoder(encoder(batch)).float().square().mean().backward()
        expected = gradients(encoder, decoder)
        encoded = cut(encoder(batch))
        decoder(encoded.value).float().square().mean().backward()
    encoded.backward()

    assert encoded.value.dtype == dtype
    assert_same_bits(gradients(encoder, decoder), expected)


def test_autocast_of_a_parameter_on_both_sides() -> None:
    """One graph adds the two sides in bfloat16, before it casts to float32; a cut adds after."""
    torch.manual_seed(0)
    layer, batch = nn.Linear(6, 6), torch.randn(5, 6)
    behind, front = copy.deepcopy(layer), copy.deepcopy(layer)
    with torch.autocast("cpu", torch.bfloat16):
        front(behind(batch)).float().square().mean().backward()
        sides = [gradients(behind), gradients(front)]
        encoded = cut(layer(batch))
        layer(encoded.value).float().square().mean().backward()
    encoded.backward()

    expected = [one + other for one, other in zip(*sides, strict=True)]
    assert_same_bits(gradients(layer), expected)


def test_the_decoder_computes_in_another_type() -> None:
    torch.manual_seed(0)
    encoder, decoder, batch = mlp(4, 3), mlp(3, 2).double(), torch.randn(5, 4)
    decoder(encoder(batch).double()).sum().backward()
    expected = gradients(encoder, decoder)

    encoded = cut(encoder(batch))
    decoder(encoded.value.double()).sum().backward()
    encoded.backward()

    assert_same_bits(gradients(encoder, decoder), expected)


def test_functional_call_on_both_sides() -> None:
    torch.manual_seed(0)
    model, scale, batch = mlp(4, 4), torch.ones(4, requires_grad=True), torch.randn(5, 4)

    def loss(between: Callable) -> Tensor:
        weights = {name: weight * scale[0] for name, weight in model.named_parameters()}
        hidden = between(functional_call(model, weights, (batch,)))
        return functional_call(model, dict(model.named_parameters()), (hidden,)).square().sum()

    loss(lambda hidden: hidden).backward()
    expected = [scale.grad, *gradients(model)]
    scale.grad = None
    made: list[Cut] = []

    def value_of_cut(hidden: Tensor) -> Tensor:
        made.append(cut(hidden))
        return made[0].value

    loss(value_of_cut).backward()
    made[0].backward()

    assert_same_bits([scale.grad, *gradients(model)], expected)


def test_sparse_gradients() -> None:
    torch.manual_seed(0)
    table, ids = nn.Embedding(9, 4, sparse=True), torch.tensor([1, 4, 4])
    F.embedding(ids, 2 * table.weight, sparse=True).square().sum().backward()
    expected = gradients(table)

    encoded = cut(2 * table.weight)
    F.embedding(ids, encoded.value, sparse=True).square().sum().backward()
    encoded.backward()

    assert_same_bits(gradients(table), expected)


def test_packed_sequence() -> None:
    torch.manual_seed(0)
    encoder, decoder = nn.LSTM(3, 4), nn.LSTM(4, 2)
    batch = pack_sequence([torch.randn(length, 3) for length in (2, 5, 3)], enforce_sorted=False)

    def loss(hidden: PackedSequence) -> Tensor:
        return pad_packed_sequence(decoder(hidden)[0])[0].square().sum()

    loss(encoder(batch)[0]).backward()
    expected = gradients(encoder, decoder)
    encoded = cut(encoder(batch)[0])
    loss(encoded.value).backward()
    encoded.backward()

    assert isinstance(encoded.value, PackedSequence)
    assert_same_bits(gradients(encoder, decoder), expected)


def test_cache_of_transformers() -> None:
    """The prompt's keys and values are cut; the continuation then appends to the cache in front."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=2, n_head=2)
    model = transformers.GPT2LMHeadModel(config).double().eval()
    prompt, rest = torch.randint(20, (2, 5)), torch.randint(20, (2, 4))

    def loss(cache: object) -> Tensor:
        return model(rest, past_key_values=cache, labels=rest).loss

    loss(model(prompt, use_cache=True).past_key_values).backward()
    expected = gradients(model)
    encoded = cut(model(prompt, use_cache=True).past_key_values)
    loss(encoded.value).backward()
    encoded.backward()

    assert encoded.value.get_seq_length() == 9
    assert_same_bits(gradients(model), expected)


def test_validation_without_recording() -> None:
    encoder = mlp(4, 3)
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            hidden = encoder(torch.ones(2, 4))
            assert cut(hidden).value is hidden


def test_same_device_is_no_copy() -> None:
    hidden = torch.ones(2, requires_grad=True) * 2

    assert cut((hidden, hidden > 0), device="cpu").value[0].data_ptr() == hidden.data_ptr()


def test_another_device() -> None:
    hidden = torch.ones(2, requires_grad=True) * 2
    encoded = cut((hidden, hidden > 0), device="meta")

    assert [part.device.type for part in encoded.value] == ["meta", "meta"]
    assert encoded.value[0].is_leaf


def test_the_value_can_be_saved() -> None:
    """Warnings are errors here; the hook on the leaf is ours and need not be saved."""
    value = cut(torch.ones(2, requires_grad=True) * 2).value
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)

    assert torch.load(file).equal(value)
