"""A Transformer whose state is a key-value cache, as in Transformer-XL, segment by segment."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

import gradwright as gw
from tests.loops.segments.models import flat_gradient, relative_error
from tests.reference.bptt import one_graph, token_weights

CONFIG = LlamaConfig(
    vocab_size=11,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
)
TIMES, LENGTH = 22, 6


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(CONFIG).double()


def tokens() -> Tensor:
    """[row, time]"""
    return torch.randint(11, (2, TIMES + 1), generator=torch.Generator().manual_seed(1))


def inputs_and_targets() -> tuple[Tensor, Tensor]:
    return tokens()[:, :-1], tokens()[:, 1:]


def runner(model: LlamaForCausalLM, kind: str) -> Any:
    def run(segment: tuple[Tensor, Tensor], cache: Any) -> tuple[Tensor, Any]:
        inputs, targets = segment
        cache = made(kind) if cache is None else cache
        logits = model(inputs, past_key_values=cache, use_cache=True).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return loss, cache

    return run


def made(kind: str) -> Any:
    return DynamicCache() if kind == "DynamicCache" else StaticCache(CONFIG, max_cache_len=TIMES)


def parts() -> list[tuple[Tensor, Tensor]]:
    cut = (tensor.split(LENGTH, 1) for tensor in inputs_and_targets())
    return list(zip(*cut, strict=True))


@pytest.mark.parametrize("kind", ["DynamicCache", "StaticCache"])
def test_exact_segments_are_one_run(kind: str) -> None:
    model = llama()
    run = runner(model, "DynamicCache")
    run(inputs_and_targets(), None)[0].backward()
    whole = flat_gradient(model)
    one_graph(run, parts(), token_weights(parts()))[0].backward()
    expected = flat_gradient(model)
    assert relative_error(expected, whole) <= 1e-10  # causal attention: the same, cut or not

    lengths = []
    for segment in gw.tbptt(runner(model, kind), LENGTH, exact=True)(inputs_and_targets()):
        segment.loss.backward()
        lengths.append(int(segment.state.get_seq_length()))

    assert relative_error(flat_gradient(model), expected) <= 1e-12
    assert lengths == [22, 18, 12, 6]


@pytest.mark.parametrize("kind", ["DynamicCache", "StaticCache"])
def test_truncated_segments_are_those_of_a_loop_by_hand(kind: str) -> None:
    model = llama()
    run = runner(model, kind)
    state = None
    for part in parts():
        with torch.no_grad():
            after = run(part, rebuilt(state, kind))[1]
        run(part, rebuilt(state, kind))[0].backward()
        state = after
    expected = flat_gradient(model)

    kept = []
    for segment in gw.tbptt(run, LENGTH)(inputs_and_targets()):
        segment.loss.backward()
        kept.append(segment.state)

    assert relative_error(flat_gradient(model), expected) <= 1e-12
    if kind == "DynamicCache":
        assert [cache.get_seq_length() for cache in kept] == [6, 12, 18, 22]


def rebuilt(cache: Any, kind: str) -> Any:
    """A new cache with the same keys and values."""
    new = made(kind)
    for index, layer in enumerate(cache.layers if cache else []):
        length = int(cache.get_seq_length())
        new.update(layer.keys[:, :, :length].clone(), layer.values[:, :, :length].clone(), index)
    return new


def test_history_goes_back_through_the_cache() -> None:
    model = llama()
    run = runner(model, "DynamicCache")
    losses: list[Tensor] = []
    for segment in gw.tbptt(run, LENGTH, history=LENGTH)(inputs_and_targets()):
        losses.append(segment.loss)
    sum(losses).backward()  # type: ignore[union-attr]
    found = flat_gradient(model)

    state, states = None, [None]
    for part in parts():
        with torch.no_grad():
            state = run(part, rebuilt(state, "DynamicCache"))[1]
        states.append(state)
    for index, part in enumerate(parts()):
        first = max(index - 1, 0)
        before: Any = rebuilt(states[first], "DynamicCache") if first else None
        if index:
            before = run(parts()[first], before)[1]
        run(part, before)[0].backward()

    assert relative_error(found, flat_gradient(model)) <= 1e-12


def test_an_initial_cache_is_not_written_to() -> None:
    model, initial = llama(), DynamicCache()

    list(gw.tbptt(runner(model, "DynamicCache"), LENGTH, initial=initial)(inputs_and_targets()))

    assert initial.get_seq_length() == 0
