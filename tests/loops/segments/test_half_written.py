"""After an error in the middle of a window, every `.grad` is what it was before."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.loops import SegmentError
from tests.loops.segments.models import INPUTS, ROWS, TIMES, Batch, batch, net

WINDOWS: list[dict] = [{"exact": True}, {"step": "window"}]


class Broken(Exception):
    """What the third of four segments raises."""


def failing(model: Any) -> Any:
    runs = []

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        runs.append(torch.is_grad_enabled())
        if sum(runs) == 3:
            raise Broken
        return model(segment, state)

    return run


@pytest.mark.parametrize("before", ["gradients", "zeros", "nothing", "some"])
@pytest.mark.parametrize("how", WINDOWS, ids=str)
def test_gradients_from_before_come_back(how: dict, before: str) -> None:
    model = net()
    if before != "nothing":
        model(batch(), None)[0].backward()
    if before == "some":
        model.head.zero_grad()
    if before == "zeros":
        model.zero_grad(set_to_none=False)
    grads = [parameter.grad for parameter in model.parameters()]
    values = [None if grad is None else grad.clone() for grad in grads]

    with pytest.raises(Broken):
        for segment in gw.tbptt(failing(model), 25, **how)(batch()):
            segment.loss.backward()

    for parameter, grad, value in zip(model.parameters(), grads, values, strict=True):
        assert parameter.grad is grad
        assert value is None or (grad is not None and torch.equal(grad, value))


@pytest.mark.parametrize("before", [True, False], ids=["a gradient before", "none before"])
@pytest.mark.parametrize("how", WINDOWS, ids=str)
def test_sparse_gradients_come_back(how: dict, before: bool) -> None:
    model, embed = net(), nn.Embedding(10, INPUTS, sparse=True, dtype=torch.float64)
    ids = torch.randint(10, (ROWS, TIMES), generator=torch.Generator().manual_seed(1))
    if before:
        embed(ids).sum().backward()
    value = embed.weight.grad.to_dense().clone() if embed.weight.grad is not None else None

    def embedded(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        return model((embed(segment[0]), segment[1]), state)

    with pytest.raises(Broken):
        for segment in gw.tbptt(failing(embedded), 25, **how)((ids, batch()[1])):
            segment.loss.backward()

    found = embed.weight.grad
    assert (found is None) == (value is None)
    assert value is None or (found is not None and torch.equal(found.to_dense(), value))


def test_parameters_that_only_read_a_state_are_found() -> None:
    """The first segment has no state, and its loss does not reach them."""
    model, reader = net(), nn.Linear(INPUTS, INPUTS, dtype=torch.float64)

    def reading(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        inputs = segment[0] if state is None else reader(segment[0])
        return model((inputs, segment[1]), state)

    with pytest.raises(Broken):
        for segment in gw.tbptt(failing(reading), 25, step="window")(batch()):
            segment.loss.backward()

    assert all(parameter.grad is None for parameter in reader.parameters())


def test_an_optimizer_step_in_a_window_leaves_no_gradient_of_the_window() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with pytest.raises(SegmentError, match="after the loop"):
        for segment in gw.tbptt(model, 25, step="window")(batch()):
            segment.loss.backward()
            optimizer.step()

    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("how", [{}, *WINDOWS], ids=str)
def test_a_loop_that_is_left_early_keeps_what_it_wrote(how: dict) -> None:
    """`break` is no error: what the loop did so far is its own."""
    model = net()

    for segment in gw.tbptt(model, 25, **how)(batch()):
        segment.loss.backward()
        break

    assert all(parameter.grad is not None for parameter in model.parameters())
