"""What is kept alive: one segment's graph, never the whole sequence, nothing afterwards."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

import gradwright as gw
from tests.loops.segments.models import TIMES, WIDTH, Batch, batch, flat_gradient, net

MODES: list[dict] = [{}, {"step": "window"}, {"exact": True}]


class Kept:
    """A saved tensor, for as long as autograd keeps it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class Saved:
    """The tensors that autograd keeps for backward."""

    def __init__(self) -> None:
        self._kept: weakref.WeakSet[Kept] = weakref.WeakSet()

    @contextmanager
    def watch(self) -> Iterator[None]:
        with saved_tensors_hooks(self._pack, lambda kept: kept.tensor):
            yield

    def _pack(self, tensor: Tensor) -> Kept:
        kept = Kept(tensor)
        self._kept.add(kept)
        return kept

    def storages(self, without: torch.nn.Module) -> dict[int, int]:
        """Bytes by address, those of parameters left out."""
        own = {p.untyped_storage().data_ptr() for p in without.parameters()}
        found = [kept.tensor.untyped_storage() for kept in self._kept]
        return {s.data_ptr(): s.nbytes() for s in found if s.data_ptr() not in own}


@pytest.mark.parametrize("how", MODES, ids=str)
def test_one_segments_graph_is_alive_at_a_time(how: dict) -> None:
    model, data, saved = net(), batch(TIMES), Saved()
    bytes_of = []
    with saved.watch():
        for segment in gw.tbptt(model, 10, **how)(data):
            bytes_of.append(sum(saved.storages(model).values()))
            segment.loss.backward()
        segment.loss.detach_()
        gc.collect()
        assert not saved.storages(model)
        model(data, None)
        whole = sum(saved.storages(model).values())

    assert len(bytes_of) == 10
    assert max(bytes_of) <= 0.15 * whole


@pytest.mark.parametrize("how", MODES, ids=str)
def test_a_segment_does_not_pin_the_whole_sequence(how: dict) -> None:
    model, data, saved = net(), batch(TIMES), Saved()
    whole = {tensor.untyped_storage().data_ptr() for tensor in data}

    with saved.watch():
        for segment in gw.tbptt(model, 10, **how)(data):
            assert not whole & set(saved.storages(model))
            assert segment.data[0].untyped_storage().nbytes() == segment.data[0].nbytes
            segment.loss.backward()


def test_a_segment_that_is_most_of_the_sequence_is_a_view() -> None:
    data = batch(TIMES)

    first, second = gw.tbptt(net(), 60)(data)

    assert first.data[0].untyped_storage().data_ptr() == data[0].untyped_storage().data_ptr()
    assert second.data[0].untyped_storage().data_ptr() != data[0].untyped_storage().data_ptr()


@pytest.mark.parametrize("how", MODES, ids=str)
def test_a_state_that_is_a_view_of_an_output_is_copied(how: dict) -> None:
    model, sizes = net(), []

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        if state is not None:
            sizes.append(state.untyped_storage().nbytes())
            state = (state[None], state[None])
        out, _ = model.body(segment[0], state)
        return (model.head(out) - segment[1]).square().mean(), out[:, -1]

    bptt = gw.tbptt(run, 20, **how)
    for segment in bptt(batch()):
        assert segment.state.untyped_storage().nbytes() == segment.state.nbytes
        segment.loss.backward()

    assert set(sizes) == {4 * WIDTH * 8}


@pytest.mark.parametrize("how", MODES, ids=str)
def test_states_have_no_graph(how: dict) -> None:
    bptt = gw.tbptt(net(), 20, **how)

    for segment in bptt(batch()):
        assert not any(part.requires_grad for part in (*segment.state, *bptt.state))
        assert not segment.value.requires_grad
        segment.loss.backward()


def test_the_callers_state_and_data_are_left_as_they_are() -> None:
    model, data = net(), batch()
    initial = tuple(torch.zeros(2, 1, 4, WIDTH, dtype=torch.float64))
    before = [tensor.clone() for tensor in (*data, *initial)]

    for segment in gw.tbptt(model, 20, exact=True, initial=initial)(data):
        segment.loss.backward()

    for tensor, old in zip((*data, *initial), before, strict=True):
        assert torch.equal(tensor, old)
        assert not tensor.requires_grad and tensor.grad is None


@pytest.mark.parametrize("how", [{"step": "window"}, {"exact": True}], ids=str)
def test_data_that_asks_for_its_gradient_gets_it(how: dict) -> None:
    model, (inputs, targets) = net(), batch()
    leaf = inputs.clone().requires_grad_()

    for segment in gw.tbptt(model, 20, **how)((leaf, targets)):
        segment.loss.backward()

    found, leaf.grad = leaf.grad, None
    flat_gradient(model)
    model((leaf, targets), None)[0].backward()
    assert found is not None and leaf.grad is not None
    far = 1e-14 if "exact" in how else 1
    assert ((found - leaf.grad).abs() <= far * leaf.grad.abs().max()).all()
    torch.testing.assert_close(found[:, 80:], leaf.grad[:, 80:])


def test_data_with_a_graph_may_be_used_once() -> None:
    model, (inputs, targets) = net(), batch()
    embed = torch.nn.Linear(5, 5, dtype=torch.float64)

    segments = list(gw.tbptt(model, 20, step="window")((embed(inputs), targets)))
    torch.stack([segment.loss for segment in segments]).sum().backward()

    assert embed.weight.grad is not None and embed.weight.grad.norm() > 0
