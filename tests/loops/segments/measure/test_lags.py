"""How much gradient reaches back, against what is known in closed form or from one graph."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from gradwright.loops import measure_lengths
from tests.loops.segments.measure.recurrences import Linear, inputs
from tests.loops.segments.models import batch, net


@pytest.mark.parametrize("budget", [10**6, 1], ids=["long segments", "short segments"])
@pytest.mark.parametrize("a", [0.5, -0.75, 1.25])
def test_a_linear_recurrence_decays_by_its_factor(a: float, budget: int) -> None:
    report = measure_lengths(Linear(a), inputs(100), budget, lengths=[2], reduction="sum")
    lags = report.lags
    assert lags is not None
    assert lags.lags[:20] == (*range(1, 17), 18, 20, 22, 24)
    assert lags.lags[-1] == 50
    assert lags.ends == (50, 67, 83, 99)
    assert lags.norms == pytest.approx([abs(a) ** lag for lag in lags.lags], rel=1e-12)
    assert lags.relative == pytest.approx([abs(a) ** (lag - 1) for lag in lags.lags], rel=1e-12)


def test_ends_are_averaged() -> None:
    run, x = Linear(0.5, square=True), inputs(40)
    report = measure_lengths(run, x, "1 MB", lengths=[4], lags=10, ends=3, reduction="sum")
    assert report.lags is not None
    assert report.lags.ends == (10, 25, 39)
    states = [run(x[:, : end + 1], None)[1].item() for end in report.lags.ends]
    mean = sum(map(abs, states)) / 3
    assert report.lags.norms == pytest.approx([mean * 0.5**lag for lag in range(1, 11)], rel=1e-12)


def of_one_graph(end: int, lag: int) -> float:
    """‖∂L_end/∂h_(end - lag)‖ of the LSTM, whose state is a pair."""
    model, (x, y) = net(), batch(30)
    first = end - lag + 1
    with torch.no_grad():
        _, state = model((x[:, :first], y[:, :first]), None)
    leaves = [part.requires_grad_() for part in state]
    _, late = model((x[:, first:end], y[:, first:end]), tuple(leaves)) if lag > 1 else (0, leaves)
    loss, _ = model((x[:, end : end + 1], y[:, end : end + 1]), tuple(late))
    found = torch.autograd.grad(loss, leaves)
    return float(torch.cat([part.flatten() for part in found]).norm())


def test_lags_of_a_network_are_those_of_one_graph() -> None:
    report = measure_lengths(net(), batch(30), "1 MB", lengths=[3], lags=20, ends=1)
    assert report.lags is not None
    assert report.lags.ends == (29,)
    expected = [of_one_graph(29, lag) for lag in report.lags.lags]
    assert expected[-1] > 0
    assert report.lags.norms == pytest.approx(expected, rel=1e-10)


def test_where_nothing_goes_back_the_norms_are_zero() -> None:
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)

    def run(x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        return (weight * x).mean(), x[:, -1]

    report = measure_lengths(run, inputs(10), "1 MB")
    assert report.lags is not None
    assert set(report.lags.norms) == {0.0}
    assert all(value != value for value in report.lags.relative)
    assert all(each.error < 1e-15 for each in report.tried if each.error is not None)
    assert "nan" in str(report)


def test_times_without_tokens_are_no_ends() -> None:
    x = inputs(40)
    mask = torch.ones(1, 40, dtype=torch.bool)
    mask[:, 25] = False

    def run(segment: tuple[Tensor, Tensor], state: Tensor | None) -> tuple[Tensor, Tensor]:
        return model(segment[0], state)

    def count(segment: tuple[Tensor, Tensor]) -> Tensor:
        return segment[1].sum()

    model = Linear(0.5)
    some = {"lengths": [4], "lags": 10, "ends": 3, "reduction": "sum", "count": count}
    report = measure_lengths(run, (x, mask), "1 MB", **some)  # type: ignore[arg-type]
    assert report.lags is not None
    assert report.lags.ends == (10, 39)
    mask[:, [10, 39]] = False
    report = measure_lengths(run, (x, mask), "1 MB", **some)  # type: ignore[arg-type]
    assert report.lags is None


def test_no_segment_is_longer_than_one_that_fits() -> None:
    seen = []

    def run(x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        seen.append(x.shape[1])
        return model(x, state)

    model = Linear(0.5)
    (one,) = measure_lengths(model, inputs(100), "1 MB", lengths=[2], lags=0).tried
    seen.clear()
    report = measure_lengths(run, inputs(100), one.saved, lengths=[2, 3, 4])
    assert report.length == 2
    assert report.lags is not None
    steps = [after - before for before, after in pairwise(report.lags.lags)]
    assert max(steps) == 2
    assert max(seen[-300:]) == 2  # those of the lags


def test_lags_can_be_left_out() -> None:
    report = measure_lengths(Linear(0.5), inputs(10), "1 MB", lags=0)
    assert report.lags is None
    assert "reaches back" not in str(report)
