"""Rows are reset where a new document begins: as if that row had been run alone."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

import gradwright as gw
from gradwright.loops import reset_rows
from tests.loops.segments.models import (
    TIMES,
    WIDTH,
    Batch,
    batch,
    flat_gradient,
    net,
    relative_error,
)
from tests.reference.bptt import cuts

ROWS = 3  # unlike the number of layers


def resets(**times: list[int]) -> Tensor:
    """bool [row, time]"""
    mask = torch.zeros(ROWS, TIMES, dtype=torch.bool)
    for row, at in times.items():
        mask[int(row[1:]), at] = True
    return mask


MASKS = {
    "at the first time": resets(r0=[0], r1=[0], r2=[0]),
    "at a border": resets(r1=[20]),
    "inside a segment": resets(r1=[37], r2=[37, 38]),
    "all rows at once": resets(r0=[50], r1=[50], r2=[50]),
    "at the last time": resets(r0=[99]),
    "nowhere": resets(),
}


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("body", ["LSTM", "GRU"])
def test_each_document_is_as_if_run_alone(body: str, name: str, how: dict) -> None:
    model, data, mask = net(body), batch(rows=ROWS), MASKS[name]
    bptt = gw.tbptt(recorder(model), 20, **how)

    outs: dict[int, Any] = {}
    for segment in bptt(data, reset=mask):
        segment.loss.backward()
        outs[segment.start] = segment.output
    found = torch.cat([outs[start] for start in sorted(outs)], dim=1)

    for row in range(ROWS):
        assert relative_error(found[row], alone(model, data[0][row], mask[row])) <= 1e-12


def recorder(model: Any) -> Any:
    def run(segment: Batch, state: Any) -> tuple[Tensor, Any, Tensor]:
        out, state = model.body(segment[0], state)
        return (model.head(out) - segment[1]).square().mean(), state, out.detach()

    return run


def alone(model: Any, inputs: Tensor, mask: Tensor) -> Tensor:
    begins = sorted({0, *mask.nonzero().flatten().tolist(), TIMES})
    documents = [inputs[a:b] for a, b in pairwise(begins)]
    return torch.cat([model.body(document[None], None)[0][0].detach() for document in documents])


def test_segments_end_where_a_document_does() -> None:
    mask = resets(r1=[37], r2=[40, 41])

    found = [segment.start for segment in gw.tbptt(net(), 20)(batch(rows=ROWS), reset=mask)]

    assert found == [0, 20, 37, 40, 41, 61, 81]


@pytest.mark.parametrize("dim", [0, 1])
def test_the_mask_is_laid_out_as_the_batch(dim: int) -> None:
    model, data, mask = net(), batch(rows=ROWS), resets(r1=[37])
    expected = [s.value for s in gw.tbptt(recorder(model), 20)(data, reset=mask)]

    def run(segment: Batch, state: Any) -> Any:
        turned = [tensor if dim else tensor.transpose(0, 1) for tensor in segment]
        return recorder(model)(turned, state)

    turned: Any = data if dim else tuple(tensor.transpose(0, 1) for tensor in data)
    found = gw.tbptt(run, 20, dim=dim)(turned, reset=mask if dim else mask.t())

    torch.testing.assert_close([segment.value for segment in found], expected)


def test_a_mask_of_rows_is_for_the_start_of_the_batch() -> None:
    model, (first, second) = net(), cuts(batch(rows=ROWS), 50)
    bptt: Any = gw.tbptt(recorder(model), 20, carry=True)
    list(bptt(first))

    outs = [s.output for s in bptt(second, reset=torch.tensor([False, True, False]))]

    found = torch.cat(outs, dim=1)
    fresh = model.body(second[0], None)[0].detach()
    assert relative_error(found[1], fresh[1]) <= 1e-12
    assert relative_error(found[0], fresh[0]) > 1e-3


def test_a_function_reads_the_mask_off_each_segment() -> None:
    model, data, mask = net(), batch(rows=ROWS), resets(r1=[40], r2=[60])
    inside = (*data, mask)

    def run(segment: Any, state: Any) -> Any:
        return recorder(model)(segment[:2], state)

    expected: Any = list(gw.tbptt(recorder(model), 20)(data, reset=mask))
    found: Any
    for found in (
        gw.tbptt(run, 20)(inside, reset=lambda segment: segment[2][:, 0]),
        gw.tbptt(run).stream(iter(cuts(inside, 20)), reset=lambda segment: segment[2][:, 0]),
    ):
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one.output, other.output)


def test_no_gradient_crosses_a_reset() -> None:
    model, data = net(), batch(rows=ROWS)
    inputs = data[0].clone().requires_grad_()

    def run(segment: Any, state: Any) -> tuple[Tensor, Any]:
        out, state = model.body(segment[0], state)
        last = out[1, -1].sum() if segment[2][0, -1] == TIMES - 1 else out.sum() * 0
        return last, state

    clock = torch.arange(TIMES).expand(ROWS, -1)
    bptt = gw.tbptt(run, 20, exact=True)
    for segment in bptt((inputs, data[1], clock), reset=resets(r1=[37])):
        segment.loss.backward()

    assert inputs.grad is not None
    assert inputs.grad[1, :37].abs().sum() == 0
    assert (inputs.grad[1, 37:].abs().sum(dim=1) > 0).all()
    assert inputs.grad[0].abs().sum() == inputs.grad[2].abs().sum() == 0


@pytest.mark.parametrize("body", ["LSTM", "GRU"])
@pytest.mark.parametrize("rows", [1, ROWS])
def test_a_learned_start_is_trained_by_every_reset(body: str, rows: int) -> None:
    model, data, mask = net(body), batch(rows=ROWS), resets(r1=[37], r2=[60])
    layers = 2 if body == "GRU" else 1
    raw = torch.full((layers, rows, WIDTH), 0.2, dtype=torch.float64).requires_grad_()

    def start(n_rows: int) -> Any:
        h = raw.tanh() if raw.shape[1] == n_rows else raw.tanh().expand(-1, n_rows, -1).contiguous()
        return (h, h * 2) if body == "LSTM" else h

    for segment in gw.tbptt(model, 20, exact=True, initial=lambda _: start(ROWS))(data, reset=mask):
        segment.loss.backward()
    found, start_found = flat_gradient(model), raw.grad

    raw.grad = None
    for row in range(ROWS):
        begins = sorted({0, *mask[row].nonzero().flatten().tolist(), TIMES})
        for a, b in pairwise(begins):
            document = (data[0][row : row + 1, a:b], data[1][row : row + 1, a:b])
            before = one_row(start(ROWS), row)
            (model(document, before)[0] * (b - a) / TIMES / ROWS).backward()

    assert start_found is not None and raw.grad is not None
    assert relative_error(start_found, raw.grad) <= 1e-12
    assert relative_error(found, flat_gradient(model)) <= 1e-12


def one_row(state: Any, row: int) -> Any:
    if isinstance(state, Tensor):
        return state[:, row : row + 1].contiguous()
    return tuple(one_row(part, row) for part in state)


@pytest.mark.parametrize("all_rows", [False, True])
def test_one_fresh_row_stands_for_all(all_rows: bool) -> None:
    state = torch.full((1, 3, 4), 7.0)

    found = reset_rows(state, torch.tensor([all_rows, True, all_rows]), torch.ones(1, 1, 4))

    assert found.shape == state.shape
    assert torch.equal(found[:, 1], torch.ones(1, 4))
    assert torch.equal(found[:, 0], torch.full((1, 4), 1.0 if all_rows else 7.0))


def test_what_is_fresh_takes_the_type_of_the_state() -> None:
    state = torch.ones(1, 3, 4, dtype=torch.bfloat16)

    found = reset_rows(state, torch.tensor([True, False, False]), torch.zeros(1, 3, 4))

    assert found.dtype is torch.bfloat16


def test_numbers_that_are_the_same_at_the_start_may_stay() -> None:
    state = (torch.ones(2, 4), 3)

    found = reset_rows(state, torch.tensor([True, False]), (torch.zeros(1, 4), 3))

    assert found[1] == 3
    assert found[0].tolist() == [[0.0] * 4, [1.0] * 4]


def test_where_all_rows_begin_anew_run_gets_none_again() -> None:
    seen: list[Any] = []

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        seen.append(state)
        return model(segment, state)

    model = net("dataclass")  # with a number, which no single row can reset
    list(gw.tbptt(run, 50)(batch(rows=ROWS), reset=resets(r0=[50], r1=[50], r2=[50])))

    assert seen == [None, None]
