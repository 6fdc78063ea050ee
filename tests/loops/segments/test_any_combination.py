"""All options together: lengths, masks, resets, starts, weights, noise, one or several windows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import gradwright as gw
from tests.loops.segments.models import INPUTS, WIDTH, OverTimes, flat_gradient, net, relative_error
from tests.reference.bptt_rows import spans, window_loss

ROWS = 3


@dataclass(frozen=True)
class Case:
    """One way to ask for segments, and what they are asked of."""

    seed: int
    times: int
    windows: int
    lengths: tuple[int, ...]  # in turn, over and over
    labelled: float  # share of tokens that count
    begins: float  # share of tokens at which a document begins
    middle: str
    exact: bool
    carry: bool
    learned_start: bool
    average: str
    reduction: str


MIDDLES: dict[str, Callable[[], nn.Module]] = {
    "plain": nn.Identity,
    "dropout": nn.Dropout,
    "BatchNorm": lambda: OverTimes(WIDTH),
}

CASES = st.builds(
    Case,
    seed=st.integers(0, 99),
    times=st.integers(1, 20),
    windows=st.integers(1, 2),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple),
    labelled=st.sampled_from([0.1, 0.5, 1.0]),
    begins=st.sampled_from([0.0, 0.05, 0.3]),
    middle=st.sampled_from(list(MIDDLES)),
    exact=st.booleans(),
    carry=st.booleans(),
    learned_start=st.booleans(),
    average=st.sampled_from(["tokens", "segments"]),
    reduction=st.sampled_from(["mean", "sum"]),
)


class Learner(nn.Module):
    """An LSTM with a learned start, called with `(inputs, targets, mask)`."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.net, self.sums = net("LSTM", MIDDLES[case.middle]()), case.reduction == "sum"
        self.raw = nn.Parameter(torch.ones(2, 1, ROWS, WIDTH, dtype=torch.float64))

    def forward(self, segment: tuple[Tensor, ...], state: Any) -> tuple[Tensor, Any]:
        inputs, targets, mask = segment
        out, state = self.net.body(inputs, state)
        errors = (self.net.head(self.net.middle(out)) - targets).square().mean(dim=2)[mask]
        return errors.sum() if self.sums else errors.mean(), state

    def start(self) -> tuple[Tensor, ...]:
        return tuple(self.raw.tanh())


@settings(max_examples=60)
@given(CASES)
def test_any_combination_is_that_of_one_graph(case: Case) -> None:
    model, twin = Learner(case), Learner(case)
    windows = [window_of(case, index) for index in range(case.windows)]

    after = [step(model, case, windows), step_by_hand(twin, case, windows)]

    assert relative_error(flat_gradient(model), flat_gradient(twin)) <= 1e-12
    assert torch.equal(*after)
    for one, other in zip(model.buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)


def step(model: Learner, case: Case, windows: list[tuple[Tensor, ...]]) -> Tensor:
    """The state of the random numbers after all windows."""
    torch.manual_seed(case.seed)
    lengths = in_turn(case)
    bptt: Any = gw.tbptt(
        model,
        lambda: next(lengths),
        exact=case.exact,
        step=None if case.exact else "window",
        average=case.average,  # type: ignore[arg-type]
        reduction=case.reduction,  # type: ignore[arg-type]
        count=lambda segment: segment[2].sum(),
        carry=case.carry,
        initial=(lambda _: model.start()) if case.learned_start else None,
        rows=1,
    )
    for *window, resets in windows:
        for segment in bptt(tuple(window), reset=resets):
            segment.loss.backward()
    return torch.get_rng_state()


def step_by_hand(model: Learner, case: Case, windows: list[tuple[Tensor, ...]]) -> Tensor:
    torch.manual_seed(case.seed)
    lengths, state = in_turn(case), None
    for *window, resets in windows:
        begins = resets.any(dim=0).nonzero().flatten().tolist()
        where = spans(case.times, lengths, begins)
        weights = weights_of(case, [int(window[2][:, a:b].sum()) for a, b in where])
        state = tuple(part.detach() for part in state) if state and case.carry else None
        start = model.start if case.learned_start else None
        total, state = window_loss(
            model, tuple(window), resets, where, weights, state, start, truncate=not case.exact
        )
        total.backward()
    return torch.get_rng_state()


def weights_of(case: Case, counts: list[int]) -> list[float]:
    filled = sum(count > 0 for count in counts)
    shares = [n / sum(counts) if case.average == "tokens" else 1 / filled for n in counts]
    per_token = case.reduction == "sum"
    return [
        (share / n if per_token else share) if n else 0
        for share, n in zip(shares, counts, strict=True)
    ]


def window_of(case: Case, index: int) -> tuple[Tensor, ...]:
    """Inputs, targets, what counts, where documents begin."""
    generator = torch.Generator().manual_seed(100 * case.seed + index)
    shape = (ROWS, case.times)
    inputs, targets = (
        torch.randn(*shape, INPUTS, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    mask, resets = (
        torch.rand(shape, generator=generator) < share for share in (case.labelled, case.begins)
    )
    mask[0, 0] |= not mask.any()
    return inputs, targets, mask, resets


def in_turn(case: Case) -> Iterator[int]:
    while True:
        yield from case.lengths
