"""Gradients that go back further than a segment, through segments computed again."""

import pytest
import torch

import gradwright as gw
from tests.loops.segments.models import (
    TIMES,
    assert_same_parameters,
    batch,
    flat_gradient,
    net,
    relative_error,
)
from tests.reference.bptt import cuts, going_back


@pytest.mark.parametrize("back", [1, 3])
def test_history_goes_back_through_whole_segments(back: int) -> None:
    model, twin = net(), net()
    step, twin_step = (torch.optim.SGD(m.parameters(), lr=0.5) for m in (model, twin))
    for loss in going_back(twin, cuts(batch(), 15), back):
        twin_step.zero_grad()
        loss.backward()
        twin_step.step()

    for segment in gw.tbptt(model, 15, history=15 * back)(batch()):
        step.zero_grad()
        segment.loss.backward()
        step.step()

    assert_same_parameters(model, twin)


def test_history_over_all_segments_is_full_bptt() -> None:
    model = net()
    model(batch(), None)[0].backward()
    expected = flat_gradient(model)

    for segment in gw.tbptt(model, 30, history=TIMES, step="window")(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12


@pytest.mark.parametrize("history", [1, 10, 20, 50])
def test_history_that_is_no_multiple_of_the_length(history: int) -> None:
    """The gradient of one segment goes back `history` times, or to the start of that segment."""
    model = net()
    inputs, targets = (part.detach() for part in batch())
    inputs.requires_grad_()

    reached = []
    for segment in gw.tbptt(model, 15, history=history)((inputs, targets)):
        inputs.grad = None
        segment.loss.backward()
        seen = inputs.grad.abs().sum(dim=(0, 2)).nonzero()  # type: ignore[attr-defined]
        reached.append(segment.start - int(seen.min()))

    assert all(min(history, 15 * i) <= back < history + 15 for i, back in enumerate(reached))


def test_a_carried_history_goes_back_into_the_batch_before() -> None:
    model = net()
    for segment in gw.tbptt(model, 20, history=40)(batch()):
        segment.loss.backward()
    expected = flat_gradient(model)

    bptt = gw.tbptt(model, 20, history=40, carry=True)
    for window in cuts(batch(), 40):
        for segment in bptt(window):
            segment.loss.backward()

    assert torch.equal(flat_gradient(model), expected)
