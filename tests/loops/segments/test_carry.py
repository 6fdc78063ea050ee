"""The state goes on from batch to batch, or not; streams are pulled one segment at a time."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import gradwright as gw
from tests.loops.bits import assert_same_bits, gradients
from tests.loops.segments.models import TIMES, Batch, batch, net
from tests.reference.bptt import cuts, truncated


def test_carried_state_is_that_of_one_long_batch() -> None:
    model, data = net(), batch()
    _, expected = model(data, None)
    bptt = gw.tbptt(model, 20, carry=True)

    for window in cuts(data, 50):
        list(bptt(window))

    for one, other in zip(bptt.state, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)


@pytest.mark.parametrize("forget", ["reset()", "no carry"])
def test_a_forgotten_state_is_none(forget: str) -> None:
    seen: list[Any] = []

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        seen.append(state)
        return model(segment, state)

    model = net()
    bptt = gw.tbptt(run, TIMES, carry=forget == "reset()")
    list(bptt(batch()))
    if forget == "reset()":
        bptt.reset()
    list(bptt(batch()))

    assert seen == [None, None]
    assert bptt.state is not None


@pytest.mark.parametrize("taken", [1, 3])
def test_streams_are_pulled_one_segment_at_a_time(taken: int) -> None:
    pulled = []

    def stream() -> Iterator[tuple[Tensor, ...]]:
        for index, part in enumerate(cuts(batch(), 20)):
            pulled.append(index)
            yield part

    segments = gw.tbptt(net()).stream(stream())
    found = [next(segments) for _ in range(taken)]

    assert pulled == list(range(taken))
    assert [segment.start for segment in found] == [20 * index for index in pulled]


def test_streams_are_segments_like_others() -> None:
    model, parts = net(), cuts(batch(), 30)
    for loss in truncated(model, parts):
        loss.backward()
    expected = gradients(model)

    for segment in gw.tbptt(model).stream(iter(parts)):
        segment.loss.backward()

    assert_same_bits(gradients(model), expected)
