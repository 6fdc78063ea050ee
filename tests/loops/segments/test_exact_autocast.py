"""Exact segments under autocast: as one graph over the segments under the same autocast."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

import gradwright as gw
from tests.loops.segments.models import Batch, batch, flat_gradient, net, relative_error
from tests.reference.bptt import cuts, one_graph, token_weights


# With the cache, one graph adds up the segments' gradients of a cast weight in bfloat16 (8 bits),
# and ours in float32.
@pytest.mark.parametrize(
    ("cached", "far"), [(False, 0.0), (True, 1e-2)], ids=["not cached", "cached"]
)
@pytest.mark.parametrize("where", ["inside run", "around the loop"])
@pytest.mark.parametrize("body", ["LSTM", "dataclass"])
def test_gradient_is_that_of_one_graph(body: str, where: str, cached: bool, far: float) -> None:
    model, twin = net(body).float(), net(body).float()
    data: Any = tuple(tensor.float() for tensor in batch())
    parts = cuts(data, 30)
    with bfloat16(cached):
        total = one_graph(twin, parts, token_weights(parts))[0]
    total.backward()

    def cast(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        with bfloat16(cached):
            loss, state = model(segment, state)
        return loss, state

    inside = where == "inside run"
    bptt = gw.tbptt(cast if inside else model, 30, exact=True)
    with nullcontext() if inside else bfloat16(cached):
        for segment in bptt(data):
            segment.loss.backward()

    expected = flat_gradient(twin)
    assert relative_error(flat_gradient(model), expected) <= far
    assert expected.norm() > 0


def bfloat16(cached: bool) -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, cache_enabled=cached)


def test_autocast_is_that_of_the_first_run() -> None:
    model, seen = net("LSTM").float(), []
    data: Any = tuple(tensor.float() for tensor in batch())

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        seen.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
        return model(segment, state)

    with torch.autocast("cpu", torch.bfloat16):
        segments = gw.tbptt(run, 30, exact=True)(data)
        first = next(segments)
    first.loss.backward()
    for segment in segments:
        segment.loss.backward()

    assert seen == [(True, torch.bfloat16)] * 8
    assert not torch.is_autocast_enabled("cpu")
