"""A measurement leaves the model, its gradients and the random numbers as they were."""

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops import SegmentError, measure_lengths
from tests.loops.segments.models import batch, net


class Forgetful(nn.Module):
    """Normalises and drops times × features; counts its calls in a buffer that it replaces."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return self.drop(self.norm(x.transpose(1, 2)).transpose(1, 2))


def test_everything_is_as_it_was() -> None:
    model = net("GRU", Forgetful())
    some = model.head.weight
    some.grad = torch.ones_like(some)
    kept = some.grad
    tensors = dict(model.state_dict(keep_vars=True))
    values = {name: tensor.detach().clone() for name, tensor in tensors.items()}
    versions = {name: tensor._version for name, tensor in tensors.items()}
    torch.manual_seed(5)
    before = torch.get_rng_state()

    measure_lengths(model, batch(20), "1 MB")

    assert torch.equal(torch.get_rng_state(), before)
    assert some.grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    assert all(p.grad is None for p in model.parameters() if p is not some)
    after = dict(model.state_dict(keep_vars=True))
    assert all(after[name] is tensor for name, tensor in tensors.items())
    assert all(torch.equal(after[name], value) for name, value in values.items())
    assert {name: tensor._version for name, tensor in after.items()} == versions
    assert model.training


def test_hooks_of_gradients_that_arrive_do_not_run() -> None:
    """Optimizers that step in backward hang on them."""
    model, seen = net(), list[Tensor]()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(seen.append)
    measure_lengths(model, batch(10), "1 MB")
    assert seen == []


def test_also_after_an_error() -> None:
    middle, calls = Forgetful(), 0
    model = net("GRU", middle)

    def run(segment, state):
        nonlocal calls
        calls += 1
        loss, state = model(segment, state)
        return (loss.detach() if calls == 3 else loss), state

    mean = middle.norm.running_mean
    assert mean is not None
    value, random = mean.clone(), torch.get_rng_state()
    with pytest.raises(SegmentError, match="segment 2 has no graph"):
        measure_lengths(run, batch(20), "1 MB")
    assert middle.norm.running_mean is mean
    assert torch.equal(mean, value)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(p.grad is None for p in model.parameters())


def test_tied_buffers_stay_tied_while_it_measures() -> None:
    model = net("GRU", nn.Sequential(nn.BatchNorm1d(20), nn.BatchNorm1d(20)))
    first, second = model.middle.children()
    second.running_mean = first.running_mean
    tied = []

    def run(segment, state):
        result = model(segment, state)
        tied.append(first.running_mean is second.running_mean)
        return result

    measure_lengths(run, batch(20), "1 MB", lengths=[20], lags=0)
    assert tied == [True]


def test_a_buffer_of_a_part_that_is_not_called() -> None:
    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.BatchNorm1d(8)

        def forward(self, x: Tensor) -> Tensor:
            assert self.part.running_mean is not None
            self.part.running_mean += 1
            return x

    middle = Whole()
    measure_lengths(net("GRU", middle), batch(20), "1 MB")
    assert torch.equal(middle.part.running_mean, torch.zeros(8))  # type: ignore[arg-type]


def test_where_recording_is_off() -> None:
    with torch.no_grad():
        report = measure_lengths(net(), batch(10), "1 MB")
        assert not torch.is_grad_enabled()
    assert report.tried[0].saved > 0


def test_the_same_twice() -> None:
    model = net("GRU", nn.Dropout(0.5))
    torch.manual_seed(1)
    one, other = (measure_lengths(model, batch(20), "1 MB", lengths=[3]) for _ in range(2))
    assert one == other
