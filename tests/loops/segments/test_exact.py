"""Exact segments give the gradient of full BPTT, whatever the model, the length and the state."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.loops import Segment
from tests.loops.bits import assert_same_bits, gradients
from tests.loops.segments.models import (
    BODIES,
    INPUTS,
    ROWS,
    TIMES,
    batch,
    flat_gradient,
    net,
    relative_error,
)
from tests.reference.bptt import cuts, one_graph, token_weights


def full_bptt(model: nn.Module, data: tuple[Tensor, Tensor]) -> Tensor:
    model(data, None)[0].backward()
    return flat_gradient(model)


@pytest.mark.parametrize("length", [1, 7, 16, 64], ids="k={}".format)
@pytest.mark.parametrize("body", BODIES)
def test_gradient_is_that_of_full_bptt(body: str, length: int) -> None:
    model, data = net(body), batch(TIMES)
    expected = full_bptt(model, data)

    for segment in gw.tbptt(model, length, exact=True)(data):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


def test_lengths_may_differ_from_segment_to_segment() -> None:
    model, data, lengths = net(), batch(), iter([1, 13, 2, 50, 9, 90])
    expected = full_bptt(model, data)

    found = [segment.length for segment in backwards(model, data, lambda: next(lengths))]

    assert found == [25, 9, 50, 2, 13, 1]
    assert relative_error(flat_gradient(model), expected) <= 1e-12


@pytest.mark.parametrize("length", [TIMES, TIMES + 50])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("mode", [{"exact": True}, {"step": "window"}, {}], ids=str)
def test_one_segment_is_full_bptt_to_the_last_bit(body: str, length: int, mode: dict) -> None:
    model, data = net(body), batch()
    model(data, None)[0].backward()
    expected = gradients(model)

    for segment in gw.tbptt(model, length, **mode)(data):
        segment.loss.backward()

    assert_same_bits(gradients(model), expected)


def test_segments_come_last_first_and_say_what_run_returned() -> None:
    model, data = net(), batch()
    whole = [model(segment, None)[0].detach() for segment in cuts(data, TIMES)]
    parts = cuts(data, 30)

    segments = list(backwards(model, data, 30))

    assert [(s.index, s.start, s.length) for s in segments] == [
        (3, 90, 10),
        (2, 60, 30),
        (1, 30, 30),
        (0, 0, 30),
    ]
    assert all(torch.equal(s.data[0], parts[s.index][0]) for s in segments)
    by_tokens = sum(s.value * s.count for s in segments) / TIMES
    torch.testing.assert_close(by_tokens, whole[0])
    torch.testing.assert_close(sum(s.loss.detach() for s in segments), whole[0])


def test_states_are_those_of_one_run() -> None:
    model, data = net(), batch()
    bptt = gw.tbptt(model, 30, exact=True)

    states = {}
    for segment in bptt(data):
        segment.loss.backward()
        states[segment.index] = segment.state

    state: Any = None
    for index, part in enumerate(cuts(data, 30)):
        _, state = model(part, state)
        assert all(torch.equal(a, b) for a, b in zip(states[index], state, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(bptt.state, state, strict=True))
    assert not any(part.requires_grad for part in bptt.state)


@pytest.mark.parametrize("average", ["tokens", "segments"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_weights_are_those_of_one_graph(average: str, reduction: str) -> None:
    model, data = net(), batch()
    parts = cuts(data, 30)
    weights = token_weights(parts) if average == "tokens" else [1 / 4] * 4
    one_graph(model, parts, weights)[0].backward()
    expected = flat_gradient(model)

    def run(segment: tuple[Tensor, Tensor], state: object) -> tuple:
        loss, state = model(segment, state)
        return loss * segment[0].shape[1] if reduction == "sum" else loss, state

    bptt = gw.tbptt(run, 30, exact=True, average=average, reduction=reduction)  # type: ignore[arg-type]
    for segment in bptt(data):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


@pytest.mark.parametrize("empty", [[3], [0], [1, 2], [0, 1, 2]], ids=str)
def test_segments_without_tokens_carry_the_gradient_on(empty: list[int]) -> None:
    model, data = net(), batch()
    parts = cuts(data, 25)
    counts = [0 if index in empty else 10 + index for index in range(4)]
    state, total = None, torch.zeros((), dtype=torch.float64)
    for part, count in zip(parts, counts, strict=True):
        loss, state = model(part, state)
        total = total + loss * count / sum(counts) if count else total
    total.backward()
    expected = flat_gradient(model)
    by_start = {float(part[0][0, 0, 0]): count for part, count in zip(parts, counts, strict=True)}

    def run(segment: tuple[Tensor, Tensor], state: object) -> tuple:
        loss, state = model(segment, state)
        return loss if count_of(segment) else loss * float("nan"), state

    def count_of(segment: tuple[Tensor, Tensor]) -> int:
        return by_start[float(segment[0][0, 0, 0])]

    for segment in gw.tbptt(run, 25, exact=True, count=count_of)(data):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


def test_a_factor_on_the_loss_is_a_factor_of_the_gradient() -> None:
    model, data = net(), batch()
    list(backwards(model, data, 16))
    expected = gradients(model)

    for segment in gw.tbptt(model, 16, exact=True)(data):
        (segment.loss * 1024).backward()

    found = gradients(model)
    assert_same_bits([g / 1024 for g in found if g is not None], expected)


def test_segments_that_nothing_asks_for_run_once() -> None:
    model, data, runs = net(), batch(), []

    def run(segment: tuple[Tensor, Tensor], state: object) -> tuple:
        runs.append(torch.is_grad_enabled())
        return model(segment, state)

    counts = iter([5, 5, 0, 0])
    list(backwards(run, data, 25, count=lambda _: next(counts)))

    assert runs == [False] * 4 + [True] * 2


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
def test_parameters_that_run_itself_writes_to(how: dict) -> None:
    """`max_norm` renormalizes the rows that a forward pass looks up."""
    model, (_, targets) = net(), batch()
    embed = nn.Embedding(10, INPUTS, max_norm=0.5, dtype=torch.float64)
    ids = torch.randint(10, (ROWS, TIMES), generator=torch.Generator().manual_seed(1))

    def run(segment: tuple[Tensor, Tensor], state: object) -> tuple:
        return model((embed(segment[0]), segment[1]), state)

    for segment in gw.tbptt(run, 25, **how)((ids, targets)):
        segment.loss.backward()

    assert embed.weight.grad is not None and embed.weight.grad.norm() > 0


def test_windows_add_up() -> None:
    model, data, other = net(), batch(), batch(TIMES + 7)
    (model(data, None)[0] + model(other, None)[0]).backward()
    expected = flat_gradient(model)
    bptt = gw.tbptt(model, 16, exact=True)

    for window in (data, other):
        for segment in bptt(window):
            segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


def test_carried_state_starts_the_next_window() -> None:
    model, data = net(), batch()
    first, second = cuts(data, 50)
    state = tuple(part.detach() for part in model(first, None)[1])
    model(second, state)[0].backward()
    expected = flat_gradient(model)
    bptt = gw.tbptt(model, 16, exact=True, carry=True)

    for window in (first, second):
        model.zero_grad()
        for segment in bptt(window):
            segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


def test_a_list_of_segments_stands_for_the_batch() -> None:
    model, data = net(), batch()
    expected = full_bptt(model, data)

    starts = []
    for segment in gw.tbptt(model, exact=True).stream(cuts(data, 30)):
        segment.loss.backward()
        starts.append(segment.start)

    assert relative_error(flat_gradient(model), expected) <= 1e-12
    assert starts == [90, 60, 30, 0]


def test_evaluates_where_recording_is_off() -> None:
    model, data = net(), batch()
    with torch.no_grad():
        whole = model(data, None)[0]
        segments = list(gw.tbptt(model, 30, exact=True)(data))

    torch.testing.assert_close(sum(segment.loss for segment in segments), whole)


def backwards(run: Any, data: Any, length: Any, **how: Any) -> Iterator[Segment]:
    for segment in gw.tbptt(run, length, exact=True, **how)(data):
        segment.loss.backward()
        yield segment
