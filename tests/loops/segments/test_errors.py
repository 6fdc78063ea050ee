"""Bad input gets an error that says what to do, and no gradient is half-written."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.loops import NestedError, RandomLengths, SegmentError, StateError
from tests.loops.segments.models import Batch, batch, net
from tests.reference.bptt import cuts

ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "length 0": ({"length": 0}, "`length` is 0: it must be a whole number of times, 1 or more"),
    "length -3": ({"length": -3}, "`length` is -3"),
    "length 2.5": ({"length": 2.5}, "`length` is 2.5"),
    "length True": ({"length": True}, "`length` is True"),
    "length in words": ({"length": "30"}, "`length` is '30'"),
    "history -1": ({"history": -1}, "`history` is -1"),
    "history in words": ({"history": "all"}, "`history` is 'all'"),
    "exact and history": ({"exact": True, "history": 5}, "`history` is 5, but `exact` goes back"),
    "exact, a step per segment": ({"exact": True, "step": "segment"}, "does not go with `exact`"),
    "step": ({"step": "batch"}, "`step` is 'batch': it must be 'segment' or 'window'"),
    "average": ({"average": "rows"}, "`average` is 'rows': it must be 'tokens' or 'segments'"),
    "no average": ({"average": None}, "`average` is None"),
    "average of one segment": ({"average": "segments"}, 'say step="window", or leave it out'),
    "reduction": ({"reduction": "none"}, "`reduction` is 'none': it must be 'mean' or 'sum'"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    how, message = ARGUMENTS[name]

    with pytest.raises(SegmentError, match=message):
        gw.tbptt(net(), **{"length": 10, **how})


def test_a_length_is_needed_for_a_batch() -> None:
    with pytest.raises(SegmentError, match=r"`length` is missing.*`stream`"):
        gw.tbptt(net())(batch())


@pytest.mark.parametrize("length", [0, -1, 2.5, None], ids=repr)
def test_a_length_that_a_function_gave(length: Any) -> None:
    with pytest.raises(SegmentError, match=f"`length` gave {length!r}"):
        gw.tbptt(net(), lambda: length)(batch())


@pytest.mark.parametrize(
    "how", [{"length": 0}, {"spread": 0}, {"short": 1.5}, {"short": -0.1}], ids=str
)
def test_random_lengths(how: dict) -> None:
    with pytest.raises(SegmentError, match="random lengths need"):
        RandomLengths(**{"length": 70, **how})


def later(change: Callable[[Tensor, Any], Any]) -> Callable[[nn.Module], Any]:
    """A run that gives back something else for the third segment that comes, of four."""

    def made(model: nn.Module) -> Any:
        def run(segment: Batch, state: Any) -> Any:
            loss, after = model(segment, state)
            third = torch.equal(segment[0], cuts(batch(), 30)[2][0])
            return change(loss, after) if third else (loss, after)

        return run

    return made


RUNS: dict[str, tuple[Callable[[nn.Module], Any], type[Exception], str]] = {
    "no state": (
        later(lambda loss, _: loss),
        SegmentError,
        r"\(loss, state\).*a Tensor.*segment 2",
    ),
    "four values": (
        later(lambda loss, s: (loss, s, 1, 2)),
        SegmentError,
        "a tuple of 4 for segment 2",
    ),
    "a list": (later(lambda loss, s: [loss, s]), SegmentError, "a list for segment 2"),
    "a number as loss": (
        later(lambda loss, s: (3.0, s)),
        SegmentError,
        "a float as the loss of seg",
    ),
    "no loss": (
        later(lambda loss, s: (None, s)),
        SegmentError,
        "a NoneType as the loss of segment 2",
    ),
    "a loss per row": (
        later(lambda loss, s: (loss.expand(4), s)),
        SegmentError,
        r"segment 2 has shape \[4\]: it must be a scalar. Take its mean",
    ),
    "a loss without a graph": (
        later(lambda loss, s: (loss.detach(), s)),
        SegmentError,
        "the loss of segment 2 has no graph: no parameter reaches it",
    ),
    "a state of another type": (
        later(lambda loss, s: (loss, list(s))),
        StateError,
        "`state` changed its type: it was tuple after the first segment, and is list after seg",
    ),
    "a part less": (
        later(lambda loss, s: (loss, s[:1])),
        StateError,
        r"`state\[1\]` changed its type: it was Tensor .* is not there after segment 2",
    ),
    "a state no more": (
        later(lambda loss, s: (loss, None)),
        StateError,
        "`state` changed its type",
    ),
    "a state of unknown parts": (
        later(lambda loss, s: (loss, (s[0], iter(s)))),
        (StateError, NestedError),  # type: ignore[dict-item]
        r"`state\[1\]`",
    ),
    "an error of its own": (later(lambda loss, s: 1 / 0), ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
@pytest.mark.parametrize("name", RUNS)
def test_what_run_returns(name: str, how: dict) -> None:
    made, error, message = RUNS[name]
    model = net()

    with pytest.raises(error, match=message):
        for segment in gw.tbptt(made(model), 30, **how)(batch()):
            segment.loss.backward()

    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}, {}], ids=str)
@pytest.mark.parametrize(
    ("count", "message"),
    [
        (lambda _: -1, "gave -1.0 tokens for segment 0"),
        (lambda _: float("nan"), "gave nan tokens"),
        (lambda _: torch.tensor(float("inf")), "gave inf tokens"),
        (lambda _: torch.ones(2), r"`count`.*shape \[2\]"),
        (lambda _: None, "`count` gave.*NoneType"),
    ],
    ids=["negative", "nan", "inf", "two", "none"],
)
def test_counts(count: Any, message: str, how: dict) -> None:
    model = net()

    with pytest.raises(SegmentError, match=message):
        for segment in gw.tbptt(model, 30, count=count, **how)(batch()):
            segment.loss.backward()

    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
def test_a_window_without_tokens(how: dict) -> None:
    with pytest.raises(SegmentError, match="4 segments of this window count 0 tokens"):
        list(gw.tbptt(net(), 30, count=lambda _: 0, **how)(batch()))


@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
def test_an_optimizer_step_inside_a_window(how: dict) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with pytest.raises(SegmentError, match=r"changed between two segments.*after the loop"):
        for segment in gw.tbptt(model, 30, **how)(batch()):
            segment.loss.backward()
            optimizer.step()


def test_a_forgotten_backward_in_exact_mode() -> None:
    model = net()

    with pytest.raises(SegmentError, match=r"segment 2 had no backward.*`segment.loss`"):
        for segment in gw.tbptt(model, 30, exact=True)(batch()):
            if segment.index != 2:
                segment.loss.backward()

    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("how", ["inputs", "grad"])
def test_a_backward_that_leaves_the_state_out(how: str) -> None:
    model = net()

    with pytest.raises(SegmentError, match="segment 3 gave no gradient to the state before it"):
        for segment in gw.tbptt(model, 30, exact=True)(batch()):
            if how == "inputs":
                segment.loss.backward(inputs=list(model.parameters()))
            else:
                torch.autograd.grad(segment.loss, list(model.parameters()))


def test_a_second_backward_of_one_segment() -> None:
    with pytest.raises(SegmentError, match=r"differentiated twice.*one backward"):
        for segment in gw.tbptt(net(), 30, exact=True)(batch()):
            segment.loss.backward(retain_graph=True)
            segment.loss.backward()


def test_several_losses_in_exact_mode() -> None:
    def run(segment: Batch, state: Any) -> Any:
        loss, state = model(segment, state)
        return {"a": loss, "b": loss * 2}, state

    model = net()
    with pytest.raises(SegmentError, match=r"returned 2 losses.*add them up"):
        list(gw.tbptt(run, 30, exact=True)(batch()))


def generator() -> Iterator[Any]:
    yield from cuts(batch(), 30)


def test_an_exact_stream_is_walked_twice() -> None:
    with pytest.raises(SegmentError, match=r"`segments` is a generator.*give a list"):
        list(gw.tbptt(net(), exact=True).stream(generator()))


def test_a_stream_has_no_window() -> None:
    with pytest.raises(SegmentError, match=r"number of tokens is not known.*gradwright\.Window"):
        gw.tbptt(net(), step="window").stream(generator())


def test_a_stream_of_nothing_in_exact_mode() -> None:
    with pytest.raises(SegmentError, match="0 segments"):
        list(gw.tbptt(net(), exact=True).stream([]))


@pytest.mark.parametrize("data", [torch.ones(4, 0, 5), torch.ones(4)], ids=["empty", "no time"])
def test_a_segment_of_a_stream_that_has_no_time(data: Tensor) -> None:
    with pytest.raises(SegmentError, match="`batch` has"):
        list(gw.tbptt(net()).stream(iter([data])))
