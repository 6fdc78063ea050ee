"""Fifty steps of AWD-LSTM's loop come out the same, to the last bit."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

import gradwright as gw
from gradwright.loops import RandomLengths, scaled_lr
from tests.loops.segments.models import assert_same_parameters, batch, net
from tests.reference.bptt import awd_lstm_epoch, cuts, truncated

USUAL, STEPS, CLIP = 12, 50, 0.25


def lengths() -> RandomLengths:
    return RandomLengths(USUAL, spread=3, generator=torch.Generator().manual_seed(3))


def in_turn(total: int) -> Iterator[int]:
    """The lengths of one pass over `total` times."""
    draw = lengths()
    while total:
        yield (length := min(draw(), total))
        total -= length


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.ASGD])
def test_fifty_steps_are_those_of_the_loop_by_hand(kind: Any) -> None:
    data = batch(times=sum(itertools.islice(in_turn(10_000), STEPS)))
    model, twin = (net("LSTM", nn.Dropout(0.3)) for _ in range(2))
    optimizer, by_hand = (kind(m.parameters(), lr=0.3) for m in (model, twin))
    torch.manual_seed(5)
    awd_lstm_epoch(twin, twin, by_hand, data, list(in_turn(data[0].shape[1])), USUAL, CLIP)

    torch.manual_seed(5)
    steps = 0
    for segment in gw.tbptt(model, lengths())(data):
        optimizer.zero_grad()
        segment.loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        with scaled_lr(optimizer, segment.length / USUAL):
            optimizer.step()
        steps += 1

    assert steps == STEPS
    assert_same_parameters(model, twin)
    assert optimizer.param_groups[0]["lr"] == 0.3


@pytest.mark.parametrize("accumulate", [1, 3])
def test_scaler_scheduler_clipping_and_accumulation_in_one_loop(accumulate: int) -> None:
    data: Any = tuple(tensor.float() for tensor in batch())
    model, twin = net().float(), net().float()

    segments = gw.tbptt(model, 20)(data)
    rates = train(model, (segment.loss for segment in segments), accumulate)

    assert rates == train(twin, truncated(twin, cuts(data, 20)), accumulate)
    assert_same_parameters(model, twin)


def train(model: nn.Module, losses: Iterable[Tensor], accumulate: int) -> list[Any]:
    """A loop with everything in it; the learning rates after its steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler, scaler = StepLR(optimizer, 2, 0.5), torch.amp.GradScaler("cpu", init_scale=128.0)
    rates = []
    for index, loss in enumerate(losses):
        scaler.scale(loss / accumulate).backward()
        if (index + 1) % accumulate == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
            rates.append(scheduler.get_last_lr()[0])
    return rates


def test_lengths_are_random_around_the_usual_one() -> None:
    draw = RandomLengths(70, generator=torch.Generator().manual_seed(0))

    found = torch.tensor([draw() for _ in range(4000)], dtype=torch.float64)

    short = found < 52
    assert float(short.double().mean()) == pytest.approx(0.05, abs=0.02)
    assert float(found[~short].mean()) == pytest.approx(69.5, abs=0.5)  # cut off to whole times
    assert float(found[~short].std()) == pytest.approx(5, abs=0.5)
    assert float(found[short].mean()) == pytest.approx(34.5, abs=1.5)


def test_lengths_have_a_least_value() -> None:
    draw = RandomLengths(4, spread=5, generator=torch.Generator().manual_seed(0))

    assert min(draw() for _ in range(200)) == 5


def test_a_learning_rate_comes_back_after_an_error() -> None:
    weight = nn.Parameter(torch.ones(()))
    optimizer = torch.optim.SGD([{"params": [weight], "lr": 0.5}], lr=0.1)

    with pytest.raises(KeyError), scaled_lr(optimizer, 0.5):
        assert optimizer.param_groups[0]["lr"] == 0.25
        raise KeyError

    assert optimizer.param_groups[0]["lr"] == 0.5
