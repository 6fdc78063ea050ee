"""The second run of an exact segment finds what the first one found: noise, buffers, autocast.

The twin is one graph over the segments in order, which draws the same random numbers.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils.checkpoint import checkpoint

import gradwright as gw
from tests.loops.segments.models import (
    WIDTH,
    Batch,
    OverTimes,
    batch,
    flat_gradient,
    net,
    relative_error,
)
from tests.reference.bptt import cuts, one_graph, token_weights


class Drawn(nn.Module):
    """Noise from both of torch's ways to draw it."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn_like(x) * nn.functional.dropout(x, 0.3)


class Twice(nn.Module):
    """One BatchNorm called several times per segment."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = OverTimes(WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.norm(x).tanh())


class Counted(nn.Module):
    """A buffer that every forward pass replaces by a new tensor."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return x * (1 + self.calls / 10)


MIDDLES: dict[str, Callable[[], nn.Module]] = {
    "dropout": lambda: nn.Dropout(0.5),
    "noise": Drawn,
    "BatchNorm": lambda: OverTimes(WIDTH),
    "BatchNorm, cumulative": lambda: OverTimes(WIDTH, momentum=None),
    "BatchNorm twice": Twice,
    "spectral_norm": lambda: spectral_norm(nn.Linear(WIDTH, WIDTH)),
    "old spectral_norm": lambda: nn.utils.spectral_norm(nn.Linear(WIDTH, WIDTH)),
    "counter": Counted,
    "all": lambda: nn.Sequential(OverTimes(WIDTH), nn.Dropout(0.2), nn.Linear(WIDTH, WIDTH)),
}


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.spectral_norm:FutureWarning")
@pytest.mark.parametrize("middle", MIDDLES)
def test_gradient_buffers_and_random_numbers_are_those_of_one_graph(middle: str) -> None:
    model, twin = (net("LSTM", MIDDLES[middle]()) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    parts = cuts(batch(), 30)
    torch.manual_seed(7)
    one_graph(twin, parts, token_weights(parts))[0].backward()
    after, expected = torch.get_rng_state(), flat_gradient(twin)

    torch.manual_seed(7)
    for segment in gw.tbptt(model, 30, exact=True)(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), expected) <= 1e-12
    assert torch.equal(torch.get_rng_state(), after)
    assert_same_buffers(model, twin)


def test_a_module_that_only_later_segments_call_has_its_buffers_restored() -> None:
    def model() -> tuple[nn.Module, Callable]:
        module = net("LSTM", OverTimes(WIDTH))
        plain = nn.Identity()

        def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
            out, after = module.body(segment[0], state)
            late = module.middle if state is not None else plain
            return (module.head(late(out)) - segment[1]).square().mean(), after

        return module, run

    (twin, twin_run), (found, run) = model(), model()
    parts = cuts(batch(), 30)
    one_graph(twin_run, parts, token_weights(parts))[0].backward()

    for segment in gw.tbptt(run, 30, exact=True)(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(found), flat_gradient(twin)) <= 1e-12
    assert_same_buffers(found, twin)


def test_random_numbers_of_the_loop_do_not_enter() -> None:
    model, twin = (net("LSTM", nn.Dropout(0.5)) for _ in range(2))
    parts = cuts(batch(), 30)
    torch.manual_seed(7)
    one_graph(twin, parts, token_weights(parts))[0].backward()

    torch.manual_seed(7)
    for segment in gw.tbptt(model, 30, exact=True)(batch()):
        segment.loss.backward()
        torch.randn(3)

    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12


def test_segments_that_draw_noise_when_they_are_made() -> None:
    class Noisy(list):
        def __getitem__(self, index: Any) -> Any:
            inputs, targets = super().__getitem__(index)
            return inputs + torch.randn_like(inputs), targets

    model, twin = net(), net()
    parts = cuts(batch(), 30)
    torch.manual_seed(7)
    noisy = [Noisy(parts)[index] for index in range(len(parts))]
    one_graph(twin, noisy, token_weights(parts))[0].backward()

    torch.manual_seed(7)
    for segment in gw.tbptt(model, exact=True).stream(Noisy(parts)):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12


def test_checkpointing_inside_a_segment() -> None:
    model, twin = (net("LSTM", nn.Dropout(0.5)) for _ in range(2))
    parts = cuts(batch(), 30)
    torch.manual_seed(7)
    one_graph(twin, parts, token_weights(parts))[0].backward()

    def run(segment: Batch, state: Any) -> tuple[Tensor, Any]:
        return checkpoint(model, segment, state, use_reentrant=False)

    torch.manual_seed(7)
    for segment in gw.tbptt(run, 30, exact=True)(batch()):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12


def test_learned_initial_state_gets_its_gradient() -> None:
    def start(raw: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.tanh(raw).expand(1, 4, WIDTH).contiguous()
        return h, 2 * h

    model, twin = net(), net()
    raw, twin_raw = (torch.full((WIDTH,), 0.3, dtype=torch.float64).requires_grad_() for _ in "ab")
    twin(batch(), start(twin_raw))[0].backward()

    for segment in gw.tbptt(model, 16, exact=True, initial=lambda _: start(raw))(batch()):
        segment.loss.backward()

    assert raw.grad is not None and twin_raw.grad is not None
    assert relative_error(raw.grad, twin_raw.grad) <= 1e-12
    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12


def test_rows_reset_inside_the_window() -> None:
    model, twin = net(), net()
    data, resets = batch(rows=2), torch.zeros(2, 100, dtype=torch.bool)
    resets[0, 37] = resets[1, 60] = resets[1, 61] = True
    one_row(twin, data, 0, [37, 63])
    one_row(twin, data, 1, [60, 1, 39])

    for segment in gw.tbptt(model, 16, exact=True)(data, reset=resets):
        segment.loss.backward()

    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12


def one_row(model: nn.Module, data: Batch, row: int, documents: list[int]) -> None:
    """Full BPTT over each document of a row, in units of the batch's mean."""
    ends = zip(*(tensor[row : row + 1].split(documents, 1) for tensor in data), strict=True)
    for document in ends:
        share = document[0].shape[1] / data[0].shape[1] / len(data[0])
        (model(document, None)[0] * share).backward()


def assert_same_buffers(found: nn.Module, expected: nn.Module) -> None:
    for one, other in zip(found.buffers(), expected.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)
