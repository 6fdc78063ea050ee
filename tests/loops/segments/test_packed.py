"""Packed sequences in segments: rows end one after the other, and come back in the user's order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import gradwright as gw
from gradwright.loops import SegmentError, StateError
from tests.loops.segments.models import INPUTS, WIDTH, Net, flat_gradient, net, relative_error

LENGTHS = {
    "sorted": [9, 7, 4, 2],
    "unsorted": [4, 9, 2, 7],
    "equal": [9, 9, 9, 9],
    "one stays": [9, 2, 2, 1],
    "one row": [9],
    "as many rows as layers": [6, 9],
}

Packed = tuple[PackedSequence, PackedSequence]


def packed(lengths: list[int]) -> Packed:
    """Inputs and targets of the same lengths."""
    generator = torch.Generator().manual_seed(1)
    shape = (2, len(lengths), max(lengths), INPUTS)
    both = torch.randn(shape, generator=generator, dtype=torch.float64)
    inputs, targets = (
        pack_padded_sequence(part, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
        for part in both
    )
    return inputs, targets


def runner(model: Net) -> Callable[[Packed, Any], tuple[Tensor, Any]]:
    def run(segment: Packed, state: Any) -> tuple[Tensor, Any]:
        inputs, targets = segment
        out, state = model.body(inputs, state)
        return (model.head(out.data) - targets.data).square().mean(), state

    return run


@pytest.mark.parametrize("length", [1, 2, 4, 9, 20], ids="k={}".format)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("body", ["LSTM", "GRU"])
def test_exact_segments_are_one_run_of_the_packed_sequence(
    body: str, lengths: str, length: int
) -> None:
    model, data = net(body), packed(LENGTHS[lengths])
    run = runner(model)
    loss, last = run(data, None)
    loss.backward()
    expected = flat_gradient(model)

    bptt = gw.tbptt(run, length, exact=True, rows=1)
    for segment in bptt(data):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12
    assert_same_state(bptt.state, last)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_one_long_segment_is_full_bptt_to_the_last_bit(lengths: str) -> None:
    model, data = net(), packed(LENGTHS[lengths])
    run = runner(model)
    run(data, None)[0].backward()
    expected = flat_gradient(model)

    for segment in gw.tbptt(run, 20)(data):
        segment.loss.backward()

    assert torch.equal(flat_gradient(model), expected)


@pytest.mark.parametrize("lengths", [case for case in LENGTHS if case != "as many rows as layers"])
def test_rows_are_found_without_being_told(lengths: str) -> None:
    model, data = net("LSTM"), packed(LENGTHS[lengths])
    run = runner(model)
    bptt = gw.tbptt(run, 2, step="window")

    losses = [segment.loss for segment in bptt(data)]

    loss, last = run(data, None)
    torch.testing.assert_close(sum(losses), loss)
    assert_same_state(bptt.state, last)


def test_counts_are_the_elements_of_each_segment() -> None:
    segments = list(gw.tbptt(runner(net()), 4, step="window", rows=1)(packed([4, 9, 2, 7])))

    assert [segment.count for segment in segments] == [14, 7, 1]
    assert [segment.length for segment in segments] == [4, 4, 1]


def test_carried_state_is_in_the_users_order() -> None:
    model, first, second = net(), packed([4, 9, 2, 7]), packed([5, 3, 8, 1])
    run = runner(model)
    state = run(first, None)[1]
    _, expected = run(second, state)
    bptt = gw.tbptt(run, 2, carry=True, rows=1)

    for data in (first, second):
        list(bptt(data))

    assert_same_state(bptt.state, expected)


@pytest.mark.parametrize("length", [2, 20], ids="k={}".format)
@pytest.mark.parametrize("how", ["tensors", "function"])
def test_initial_state_is_in_the_order_of_what_it_comes_from(how: str, length: int) -> None:
    """Tensors are in the user's order; what a function makes from a segment, in the segment's."""
    model, data = net(), packed([4, 9, 2, 7])
    run, order = runner(model), data[0].sorted_indices
    start = torch.randn(2, 1, 4, WIDTH, dtype=torch.float64)
    _, expected = run(data, tuple(start))
    initial = tuple(start) if how == "tensors" else lambda _: tuple(start[:, :, order])

    bptt = gw.tbptt(run, length, initial=initial, rows=1)
    list(bptt(data))

    assert_same_state(bptt.state, expected)


def test_ambiguous_rows_are_refused() -> None:
    model, data = net("GRU"), packed([6, 9])  # two layers, two rows

    with pytest.raises(StateError, match=r"dimensions \[0, 1\] have 2 entries.*`rows="):
        list(gw.tbptt(runner(model), 2)(data))


def test_history_goes_back_through_rows_that_have_ended() -> None:
    model, data = net(), packed(LENGTHS["unsorted"])
    run = runner(model)
    run(data, None)[0].backward()
    expected = flat_gradient(model)

    for segment in gw.tbptt(run, 2, history=9, step="window")(data):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


def test_history_does_not_go_back_into_another_batch() -> None:
    bptt = gw.tbptt(runner(net()), 2, history=2, carry=True)

    with pytest.raises(SegmentError, match="from one packed batch to another"):
        bptt(packed([4, 9]))


def assert_same_state(found: Any, expected: Any) -> None:
    if isinstance(expected, Tensor):
        torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=1e-15)
        return
    for one, other in zip(found, expected, strict=True):
        assert_same_state(one, other)
