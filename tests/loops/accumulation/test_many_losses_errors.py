"""Several losses that cannot be accumulated: a clear error, and no gradient half-written."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gradwright.loops import Window, WindowError
from gradwright.weighting import MoDo, PCGrad
from tests.loops.accumulation.small import batches, difference, gradients, model, summed


class Used:
    """A model with gradients from before."""

    def __init__(self) -> None:
        self.net = model()
        self.part = batches()[2]
        summed(self.net, batches()[0]).backward()
        self.before = gradients(self.net)


def loss(used: Used) -> Tensor:
    return summed(used.net, used.part)


def two(used: Used) -> dict[str, Tensor | None]:
    return {"a": loss(used), "b": loss(used)}


MANY: dict[str, tuple[Callable[[Used], tuple[Any, Any]], str]] = {
    "one count": (lambda used: (two(used), 3), "`count` is a int, but the losses have names"),
    "no count": (lambda used: (two(used), {"a": 1}), "no count for 'b'"),
    "other names": (
        lambda used: (two(used), {"a": 1, "c": 1}),
        "no count for 'b', and a count for 'c', which is no loss",
    ),
    "negative": (lambda used: (two(used), {"a": 1, "b": -1}), "the count of 'b' is -1"),
    "no graph": (
        lambda used: (two(used) | {"b": torch.ones(())}, {"a": 1, "b": 1}),
        "loss 'b' has",
    ),
    "other tasks": (lambda used: ({"a": loss(used)}, {"a": 1}), "has the losses 'a', the window"),
    "one loss": (lambda used: (loss(used), 1), "the window has a weighting, but got one loss"),
}


@pytest.mark.parametrize(("given", "message"), MANY.values(), ids=MANY.keys())
def test_several_losses_that_are_refused(
    given: Callable[[Used], tuple[Any, Any]], message: str
) -> None:
    used = Used()
    window = Window(used.net, weighting=PCGrad())
    window.backward(two(used), count={"a": 1, "b": 2})
    with pytest.raises(WindowError, match=message):
        window.backward(*given(used))

    assert len(window) == 1
    assert difference(gradients(used.net), used.before) == 0


def test_several_losses_and_a_step_between() -> None:
    used = Used()
    window = Window(used.net, weighting=PCGrad())
    window.backward(two(used), count={"a": 1, "b": 2})
    torch.optim.SGD(used.net.parameters(), lr=0.1).step()
    with pytest.raises(WindowError, match=r"optimizer\.step\(\)"):
        window.close()


def test_several_losses_without_a_term() -> None:
    used = Used()
    window = Window(used.net, weighting=PCGrad())
    window.backward(two(used), count={"a": 0, "b": 0})
    with pytest.raises(WindowError, match="add up to 0"):
        window.close()

    assert difference(gradients(used.net), used.before) == 0 and len(window) == 0


def test_several_losses_run_their_own_backwards() -> None:
    used = Used()
    window = Window(used.net, weighting=PCGrad())
    with pytest.raises(WindowError, match="`backward` is for one loss"):
        window.backward(two(used), count={"a": 1, "b": 2}, backward=Tensor.backward)


def test_a_weighting_of_several_batches() -> None:
    with pytest.raises(WindowError, match="MoDo, which compares independent batches"):
        Window(model(), weighting=MoDo(n_tasks=2))


def test_heads_that_do_not_suit_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="`heads` is 'all'"):
        Window(model(), weighting=PCGrad(), heads="all")  # type: ignore[arg-type]
