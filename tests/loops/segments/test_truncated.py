"""Truncated segments are those of a loop by hand, to the last bit, however they are weighted."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from tests.loops.segments.models import (
    TIMES,
    Batch,
    Net,
    assert_same_parameters,
    batch,
    flat_gradient,
    net,
    relative_error,
)
from tests.reference.bptt import cuts, truncated


@pytest.mark.parametrize("length", [1, 16, 30, 100], ids="k={}".format)
@pytest.mark.parametrize("body", ["LSTM", "GRU"])
def test_one_step_per_segment(body: str, length: int) -> None:
    model, twin = net(body), net(body)
    step, twin_step = (torch.optim.Adam(m.parameters(), lr=0.01) for m in (model, twin))
    for loss in truncated(twin, cuts(batch(), length)):
        twin_step.zero_grad()
        loss.backward()
        twin_step.step()

    for segment in gw.tbptt(model, length)(batch()):
        step.zero_grad()
        segment.loss.backward()
        step.step()

    assert_same_parameters(model, twin)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("average", ["tokens", "segments"])
def test_one_step_per_window(average: str, reduction: str) -> None:
    model, parts = net(), cuts(batch(), 30)
    lengths = [part[0].shape[1] for part in parts]
    shares = [n / TIMES for n in lengths] if average == "tokens" else [1 / len(parts)] * len(parts)
    for loss, share in zip(truncated(model, parts), shares, strict=True):
        (loss * share).backward()
    expected = flat_gradient(model)

    def summed(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        loss, state = model(segment, state)
        return loss * segment[0].shape[1], state

    run: Any = summed if reduction == "sum" else model
    bptt: Any = gw.tbptt(run, 30, step="window", average=average, reduction=reduction)  # type: ignore[arg-type]
    for segment in bptt(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-14


def test_a_window_of_ragged_segments_is_near_full_bptt_and_no_mean_of_means() -> None:
    """The bars are of a model of this size on white noise: see the benchmark of segments."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"body": nn.LSTM(16, 32, batch_first=True), "head": nn.Linear(32, 16)})
    model.double()
    generator = torch.Generator().manual_seed(1)
    data = tuple(torch.randn(2, 4, TIMES, 16, generator=generator, dtype=torch.float64))

    def run(segment: Any, state: Any) -> tuple[Tensor, Any]:
        out, state = model["body"](segment[0], state)
        return (model["head"](out) - segment[1]).square().mean(), state

    def error(**how: Any) -> float:
        for segment in gw.tbptt(run, 30, step="window", **how)(data):
            segment.loss.backward()
        return relative_error(flat_gradient(model), expected)

    run(data, None)[0].backward()
    expected = flat_gradient(model)

    assert error() <= 0.04
    assert error(average="segments") == pytest.approx(0.26, abs=0.02)


@pytest.mark.parametrize("how", [{"step": "segment"}, {"step": "window"}], ids=str)
def test_masked_tokens(how: dict) -> None:
    model, (inputs, targets) = net(), batch()
    mask = torch.rand(4, TIMES, generator=torch.Generator().manual_seed(2)) < 0.6
    mask[:, 40:60] = False

    def run(segment: tuple[Tensor, Tensor, Tensor], state: Any) -> tuple[Tensor, Any]:
        inputs, targets, mask = segment
        out, state = model.body(inputs, state)
        return (model.head(out) - targets)[mask].square().mean(), state  # NaN without tokens

    out = torch.cat([model.head(o) for o in outputs_of(model, cuts((inputs, targets), 20))], dim=1)
    (out - targets)[mask].square().mean().backward()
    expected = flat_gradient(model)

    bptt = gw.tbptt(run, 20, count=lambda segment: segment[2].sum(), **how)
    indices, total = [], 0.0
    for segment in bptt((inputs, targets, mask)):
        indices.append(segment.index)
        share = segment.count / float(mask.sum()) if how["step"] == "segment" else 1
        (segment.loss * share).backward()
        total += segment.count

    assert indices == [0, 1, 3, 4]
    assert total == mask.sum()
    assert relative_error(flat_gradient(model), expected) <= 1e-14


def outputs_of(model: Net, parts: list[tuple[Tensor, ...]]) -> Iterator[Tensor]:
    state = None
    for inputs, _ in parts:
        out, state = model.body(inputs, state)
        state = tuple(part.detach() for part in state)
        yield out


@pytest.mark.parametrize("absent", [None, 1])
def test_several_losses_for_gradwright_backward(absent: int | None) -> None:
    model = net()

    def run(segment: Batch, state: Any) -> tuple[dict[str, Tensor | None], Any]:
        out, state = model.body(segment[0], state)
        errors = (model.head(out) - segment[1]).square()
        without = len(seen) == absent
        seen.append(without)
        right = None if without else errors[..., 2:].mean()
        return {"left": errors[..., :2].mean(), "right": right}, state

    seen: list[bool] = []
    bptt: Any = gw.tbptt(run, 30, step="window")
    found = []
    for segment in bptt(batch()):
        result = gw.backward(segment.losses)
        found.append(sorted(name for name, loss in segment.losses.items() if loss is not None))
        assert float(result.losses[0]) == pytest.approx(float(segment.losses["left"].detach()))
    combined, seen[:] = flat_gradient(model), []
    for segment in bptt(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), combined) <= 1e-12
    assert found.count(["left", "right"]) == (4 if absent is None else 3)


def test_what_else_run_returns_is_handed_on() -> None:
    model = net()

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any, int]:
        return *model(segment, state), segment[0].shape[1]

    assert [segment.output for segment in gw.tbptt(run, 30)(batch())] == [30, 30, 30, 10]
