"""The bytes that a segment saves for backward, against counts by hand and a direct measurement."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from gradwright.loops import LengthReport, measure_lengths
from tests.loops.segments.models import batch, net

TIMES = 32
WEIGHT = nn.Parameter(torch.ones((), dtype=torch.float64))


def saved(run: Any, data: Any, lengths: list[int], budget: int = 10**9) -> list[int]:
    report = measure_lengths(run, data, budget, lengths=lengths, lags=0)
    return [each.saved for each in report.tried]


def sequence(width: int = 1) -> Tensor:
    return torch.randn(1, TIMES, width, dtype=torch.float64)


def test_counted_by_hand() -> None:
    """The inputs' copy, where there is one, and what tanh saves: its output."""

    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        return (WEIGHT * x).tanh().sum(), None

    assert saved(run, sequence(), [1, 4, 16, 32]) == [2 * 8, 2 * 8 * 4, 2 * 8 * 16, 8 * 32]


def test_views_of_the_batch_hold_nothing_more() -> None:
    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        return (WEIGHT * x[:, 1:]).sum(), None

    assert saved(run, sequence(), [32]) == [0]


def test_what_two_nodes_hold_counts_once_until_both_are_gone() -> None:
    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        y = 2 * x
        kept, dropped = WEIGHT * y, WEIGHT * y
        del dropped
        return kept.sum(), None

    assert saved(run, sequence(), [32]) == [8 * 32]


def test_what_a_cycle_of_references_holds_counts() -> None:
    """Its memory is not free before Python looks for cycles."""

    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        out = (WEIGHT * x).tanh()
        cycle: list[object] = [out]
        cycle.append(cycle)
        return out.sum(), None

    assert saved(run, sequence(), [32]) == [8 * 32]


def directly(work: Callable[[], object], known: list[Tensor]) -> int:
    """The storages that one graph saves, without those that are known."""
    found: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        found[tensor.untyped_storage().data_ptr()] = tensor.detach()
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        graph = work()
    for tensor in known:
        found.pop(tensor.untyped_storage().data_ptr(), None)
    assert graph is not None
    return sum(tensor.untyped_storage().nbytes() for tensor in found.values())


@pytest.mark.parametrize("body", ["LSTM", "GRU", "dataclass"])
@pytest.mark.parametrize("length", [4, 8])
def test_a_segment_of_a_network(body: str, length: int) -> None:
    model, data = net(body), batch(TIMES)
    (one,) = saved(model, data, [length])
    with torch.no_grad():
        _, state = model(tuple(part[:, :length] for part in data), None)
    segment = tuple(part[:, length : 2 * length].clone() for part in data)
    expected = directly(lambda: model(segment, state), list(model.parameters()))
    assert one == expected > 0


class Attention(nn.Module):
    """Attends from a segment to everything so far; the state is all keys."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.into = nn.Linear(width, width).double()

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        keys = self.into(x)
        keys = keys if past is None else torch.cat([past, keys], dim=1)
        return (F.softmax(x @ keys.transpose(1, 2), dim=-1) @ keys).square().mean(), keys


def test_a_growing_cache_is_seen_at_its_longest() -> None:
    model, x = Attention(8), sequence(8)
    with torch.no_grad():
        _, past = model(x[:, :-4], None)
    expected = directly(lambda: model(x[:, -4:].clone(), past), list(model.parameters()))
    # the cache itself is there before the segment, and is gone after it
    assert saved(model, x, [4]) == [expected]


class Within(Attention):
    """Attends within the segment only."""

    def forward(self, x: Tensor, past: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().forward(x, None)[0], x[:, -1]


def test_what_cannot_fit_is_not_run_though_memory_is_quadratic() -> None:
    model, x, lengths = Within(8), sequence(8), [1, 2, 4, 8, 16]
    exact = saved(model, x, lengths)
    assert exact[-1] - 2 * exact[-2] > 1000  # far from linear
    report = measure_lengths(model, x, exact[3], lengths=lengths, lags=0)
    *run, last = report.tried
    assert [each.saved for each in run] == exact[:4]
    assert all(each.is_measured and each.fits for each in run)
    assert not last.is_measured
    assert not last.fits
    assert exact[3] < last.saved <= exact[4]
    assert last.error is None
    assert report.length == 8


def test_what_might_fit_is_run() -> None:
    """Going by the two before, 16 times fit; measured, they do not."""
    model, x, lengths = Within(8), sequence(8), [1, 2, 4, 8, 16]
    exact = saved(model, x, lengths)
    report = measure_lengths(model, x, exact[4] - 1, lengths=lengths, lags=0)
    assert all(each.is_measured for each in report.tried)
    assert [each.fits for each in report.tried] == [True] * 4 + [False]
    assert report.length == 8


def test_a_constant_part_is_not_extrapolated() -> None:
    """Every segment saves 800 bytes whatever its length."""

    def run(x: Tensor, state: None) -> tuple[Tensor, None]:
        return (WEIGHT * torch.ones(100, dtype=torch.float64)).sum() + (
            WEIGHT * x
        ).tanh().sum(), None

    report = measure_lengths(run, sequence(), 900, lags=0)
    assert report.tried[0].saved == 816
    assert report.length == 4


def test_of_a_checkpoint_the_inputs_count() -> None:
    layer = nn.Linear(8, 8).double()

    def plain(x: Tensor, state: None) -> tuple[Tensor, None]:
        return layer(layer(2 * x).tanh()).sum(), None

    def thrifty(x: Tensor, state: None) -> tuple[Tensor, None]:
        return checkpoint(lambda y: layer(layer(y).tanh()), 2 * x, use_reentrant=False).sum(), None

    one = 8 * 8 * 16  # bytes of [time, width]
    assert saved(plain, sequence(8), [16])[0] >= 2 * one
    assert saved(thrifty, sequence(8), [16]) == [one]


def test_the_longest_that_fits() -> None:
    def report(budget: int) -> LengthReport:
        return measure_lengths(net(), batch(12), budget, lags=0)

    all_of_them = report(10**9)
    assert [each.length for each in all_of_them.tried] == [1, 2, 4, 8, 12]
    assert all_of_them.length == 12
    size = {each.length: each.saved for each in all_of_them.tried}
    assert report(size[4]).length == 4
    assert report(size[4] - 1).length == 2
    assert report(size[1] - 1).length is None
