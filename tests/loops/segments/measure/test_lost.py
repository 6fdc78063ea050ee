"""What truncation loses, against gradients of plain loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops import measure_lengths, tbptt
from tests.loops.segments.models import batch, flat_gradient, net


def lost(run, data, length: int, **more) -> tuple[float, float]:
    """The relative error and the cosine."""
    (one,) = measure_lengths(run, data, "1 GB", lengths=[length], lags=0, **more).tried
    assert one.error is not None
    assert one.cosine is not None
    return one.error, one.cosine


def gradient(length: int, exact: bool) -> Tensor:
    model = net()
    for segment in tbptt(model, length, exact=exact, step="window")(batch()):
        segment.loss.backward()
    return flat_gradient(model)


@pytest.mark.parametrize("length", [1, 7, 30])
def test_error_and_cosine(length: int) -> None:
    truncated, full = gradient(length, False), gradient(100, False)
    error, cosine = lost(net(), batch(), length)
    assert error == pytest.approx(float((truncated - full).norm() / full.norm()), rel=1e-9)
    assert cosine == pytest.approx(float(truncated @ full / truncated.norm() / full.norm()))
    assert error > 0.001


def test_one_segment_loses_nothing() -> None:
    assert lost(net(), batch(), 100) == (0.0, 1.0)


def test_parameters_can_be_chosen() -> None:
    model = net()
    head, _ = lost(model, batch(), 7, parameters=model.head.parameters())
    body, _ = lost(model, batch(), 7, parameters=model.body.parameters())
    assert head < 1e-12 < 0.01 < body


def test_random_numbers_are_the_same_in_both() -> None:
    """No state: nothing is lost, if dropout leaves out the same."""
    layer = nn.Linear(5, 5)

    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        return nn.functional.dropout(layer(x)).square().mean(), None

    x = torch.randn(2, 20, 5)
    assert lost(run, x, 4)[0] < 1e-6


def test_a_learned_start_is_a_parameter() -> None:
    torch.manual_seed(0)
    start = nn.Parameter(torch.zeros(1, 3, dtype=torch.float64))
    cell = nn.RNNCell(5, 3).double()
    x = torch.randn(2, 20, 5, dtype=torch.float64)

    def run(x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        for at_time in x.unbind(1):
            h = cell(at_time, h.expand(2, 3))
        return h.square().mean(), h

    losses, h = [], start.expand(2, 3)
    for segment in x.split(4, 1):
        loss, h = run(segment, h)
        losses.append(loss)
    (full,) = torch.autograd.grad(torch.stack(losses).mean(), start, retain_graph=True)
    (first,) = torch.autograd.grad(losses[0] / 5, start)
    error, _ = lost(run, x, 4, initial=start, parameters=[start])
    assert error == pytest.approx(float((first - full).norm() / full.norm()), rel=1e-9)
    assert start.grad is None


def test_sparse_gradients() -> None:
    torch.manual_seed(0)
    table = nn.Embedding(10, 5, sparse=True)
    model = net().float()

    def run(words: Tensor, state) -> tuple[Tensor, object]:
        x = table(words)
        return model((x, torch.zeros_like(x)), state)

    words = torch.randint(10, (2, 20))
    error, cosine = lost(run, words, 4)
    assert 0.01 < error < 1
    assert 0.5 < cosine < 1


def test_a_gradient_of_zero_has_no_relative_error() -> None:
    weight = torch.ones((), requires_grad=True)

    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        return (weight * 0 * x).sum(), None

    assert all(math.isnan(value) for value in lost(run, torch.ones(1, 8), 2))
