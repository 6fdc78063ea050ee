"""Engine calls and optimizer steps are written down as they were made."""

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from gradwright.doctor.journal import EngineCall, Journal, UserCode, mark_of


@pytest.fixture
def journal() -> Iterator[Journal]:
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.start(sys._getframe())
    yield journal
    journal.stop()
    assert failures == []


def leaf() -> Tensor:
    return torch.ones(2, requires_grad=True)


def line_of(journal: Journal, call: EngineCall) -> int:
    return journal.places.stack(call.place)[0].line


def test_backward_and_grad(journal: Journal) -> None:
    x = leaf()
    y = (x * 2).sum()
    y.backward(retain_graph=True)
    first = sys._getframe().f_lineno - 1
    torch.autograd.grad([y, y + 1], [x], create_graph=True)
    torch.autograd.backward([x.sum(), x.prod()])

    calls = journal.calls.remembered()
    assert [call.accumulate for call in calls] == [True, False, True]
    assert [call.retain_graph for call in calls] == [True, True, False]
    assert [call.create_graph for call in calls] == [False, True, False]
    assert [len(call.roots) for call in calls] == [1, 2, 2]
    assert calls[0].roots == (y.grad_fn._sequence_nr(),)  # type: ignore[union-attr]
    assert [line_of(journal, call) for call in calls] == [first, first + 2, first + 3]
    assert not any(call.raised or call.nested for call in calls)


def test_a_root_without_a_graph_and_a_call_that_raises(journal: Journal) -> None:
    with pytest.raises(RuntimeError):
        torch.ones(1).backward()

    call = journal.failing_call()
    assert call is not None and call.raised
    assert call.roots == (-1,)


def test_marks_tell_the_last_call_that_ran_the_node_and_finished(journal: Journal) -> None:
    x = leaf()
    shared = x.exp()
    shared.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        (shared * 2).sum().backward()

    assert mark_of(shared.grad_fn) == 0  # type: ignore[arg-type]


def test_marks_of_an_earlier_journal_mean_nothing(journal: Journal) -> None:
    loss = leaf().exp().sum()
    loss.backward()
    journal.stop()
    later = Journal(UserCode(), lambda error: pytest.fail(repr(error)))
    later.start(sys._getframe())
    later.stop()

    assert mark_of(loss.grad_fn) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("intermediate", [False, True])
def test_only_nodes_that_lead_to_the_inputs_are_marked(
    journal: Journal, intermediate: bool
) -> None:
    a, b = leaf(), leaf()
    inner = a.exp()
    outer = inner.sin()
    other = b.cos()
    inputs = [inner, a] if intermediate else [inner]
    (outer + other).sum().backward(inputs=inputs)

    assert mark_of(outer.grad_fn) == 0  # type: ignore[arg-type]
    assert mark_of(other.grad_fn) is None  # type: ignore[arg-type]
    assert mark_of(inner.grad_fn) == (0 if intermediate else None)  # type: ignore[arg-type]


def test_reentrant_checkpoints_are_nested(journal: Journal) -> None:
    x = leaf()
    torch.utils.checkpoint.checkpoint(torch.exp, x * 2, use_reentrant=True).sum().backward()

    assert [call.nested for call in journal.calls.remembered()] == [False, True]


def test_threads_are_not_nested(journal: Journal) -> None:
    import threading

    class Waits(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            thread = threading.Thread(target=lambda: leaf().sum().backward())
            thread.start()
            thread.join()
            return grad

    Waits.apply(leaf()).sum().backward()

    assert [call.nested for call in journal.calls.remembered()] == [False, False]


def test_steps_of_several_optimizers(journal: Journal) -> None:
    weights = leaf(), leaf()
    both = [torch.optim.SGD([weight], lr=0.1) for weight in weights]
    for turn in range(6):
        (weights[0] * weights[1]).sum().backward()
        both[0].step()
        if turn % 2:
            both[1].step()
    lines = {journal.places.stack(step.place)[0].line for step in journal.optimizers.remembered()}

    assert journal.optimizers.count == 9
    assert [step.optimizer() is both[0] for step in journal.optimizers.remembered()][:3] == [
        True,
        True,
        False,
    ]
    assert len(lines) == 2
    assert [call.step for call in journal.calls.remembered()] == [0, 1, 3, 4, 6, 7]


def test_closures_of_lbfgs_are_followed(journal: Journal) -> None:
    weight = leaf()
    optimizer = torch.optim.LBFGS([weight], max_iter=3)

    def closure() -> float:
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss.item()

    optimizer.step(closure)

    calls = journal.calls.remembered()
    assert len(calls) > 1 and journal.optimizers.count == 1
    for call in calls:
        stack = journal.places.stack(call.place)
        assert stack[0].code is closure.__code__
        assert stack[1].code is sys._getframe().f_code


def test_grad_scaler_steps_count(journal: Journal) -> None:
    weight = leaf()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((weight**2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()

    assert journal.optimizers.count == 1
    assert (
        journal.places.stack(journal.optimizers.remembered()[0].place)[0].code
        is sys._getframe().f_code
    )
