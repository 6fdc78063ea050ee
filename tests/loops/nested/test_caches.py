"""The key-value caches of Hugging Face Transformers are states like others."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, cache_utils

from gradwright.loops import NestedError
from gradwright.loops.nested import map_tensors, outline, tensors_of
from gradwright.loops.segments.state.between import detached

CONFIG = LlamaConfig(
    hidden_size=8, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=2
)


def filled(cache: Any) -> Any:
    """With keys and values that have a graph, for three tokens in each of two layers."""
    for layer in range(2):
        keys, values = torch.randn(2, 1, 2, 3, 4, requires_grad=True).tanh()
        cache.update(keys, values, layer, {"cache_position": torch.arange(3)})
    return cache


def of_two() -> Any:
    made = cache_utils.EncoderDecoderCache(
        filled(cache_utils.DynamicCache()), filled(cache_utils.DynamicCache())
    )
    made.is_updated[0] = True
    return made


CACHES: dict[str, Any] = {
    "DynamicCache": lambda: filled(cache_utils.DynamicCache()),
    "EncoderDecoderCache": of_two,
    "StaticCache": lambda: filled(cache_utils.StaticCache(CONFIG, max_cache_len=5)),
    "DynamicCache, sliding": lambda: filled(
        cache_utils.DynamicCache(config=sliding(CONFIG, window=2))
    ),
}


def sliding(config: LlamaConfig, window: int) -> LlamaConfig:
    config = LlamaConfig(**config.to_dict())
    config.sliding_window, config.layer_types = window, ["sliding_attention"] * 2
    return config


@pytest.fixture(params=CACHES)
def cache(request: pytest.FixtureRequest) -> Any:
    return CACHES[request.param]()


def test_detached_caches_keep_type_and_values(cache: Any) -> None:
    found = detached(cache)

    assert type(found) is type(cache)
    assert outline(found) == outline(cache)
    assert not any(tensor.requires_grad for tensor in tensors_of(found).values())
    for one, other in zip(tensors_of(found).values(), tensors_of(cache).values(), strict=True):
        assert torch.equal(one, other)


def test_the_original_keeps_its_graph_and_its_length(cache: Any) -> None:
    before = tensors_of(cache)
    assert any(tensor.requires_grad for tensor in before.values())

    found = map_tensors(cache, lambda _, tensor: tensor.detach().clone())
    one = getattr(found, "self_attention_cache", found)
    one.update(*torch.ones(2, 1, 2, 1, 4), 0, {"cache_position": torch.tensor([3])})

    assert all(now is before[name] for name, now in tensors_of(cache).items())
    assert int(cache.get_seq_length()) == 3
    assert int(found.get_seq_length()) == 4


def test_names_are_those_of_the_attributes() -> None:
    names = set(tensors_of(CACHES["DynamicCache"](), "state"))

    assert names == {f"state.layers[{n}].{part}" for n in range(2) for part in ("keys", "values")}


def test_an_unknown_part_is_named_with_its_place() -> None:
    cache = CACHES["DynamicCache"]()
    cache.layers[0].keys = nn.Parameter(torch.ones(1)).data.numpy()

    with pytest.raises(NestedError, match=r"`state\.layers\[0\]\.keys` is a numpy\.ndarray"):
        detached(cache)
