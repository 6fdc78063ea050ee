"""Misuse of a window: a clear error, and no gradient half-written."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops import Window, WindowError
from gradwright.loops.accumulation import StrangerWarning
from tests.loops.accumulation.small import (
    batches,
    difference,
    gradients,
    mean_gradients,
    model,
    plus,
    summed,
)


class Used:
    """A window after two micro-batches, with gradients from before; and what to compare with."""

    def __init__(self) -> None:
        self.net = model()
        self.parts = batches()
        summed(self.net, self.parts[0]).backward()
        self.before = gradients(self.net)
        self.window = Window(self.net)
        for part in self.parts[:2]:
            self.add(part)

    def add(self, part: tuple[Tensor, Tensor]) -> None:
        self.window.backward(summed(self.net, part), count=len(part[1]))

    def expected(self, parts: list[tuple[Tensor, Tensor]]) -> list[Tensor | None]:
        return plus(self.before, mean_gradients(self.net, parts))


def loss(used: Used) -> Tensor:
    return summed(used.net, used.parts[2])


REFUSED: dict[str, tuple[Callable[[Used], tuple[Any, Any]], str]] = {
    "negative": (lambda used: (loss(used), -1), "`count` is -1: it must be a finite number"),
    "negative tensor": (lambda used: (loss(used), torch.tensor(-2)), "`count` is -2"),
    "not a number": (lambda used: (loss(used), float("nan")), "`count` is nan"),
    "infinite": (lambda used: (loss(used), torch.tensor(float("inf"))), "`count` is inf"),
    "missing": (lambda used: (loss(used), None), "`count` is missing"),
    "several": (lambda used: (loss(used), torch.ones(2)), r"`count` is a tensor of shape \[2\]"),
    "a text": (lambda used: (loss(used), "3"), "`count` is a str"),
    "no graph": (lambda used: (loss(used).detach(), 2), "the loss has no graph"),
    "no scalar": (lambda used: (loss(used) * torch.ones(2), 2), r"the loss has shape \[2\]"),
    "complex": (lambda used: (loss(used) * (1 + 0j), 2), "the loss is complex"),
    "a float": (lambda used: (loss(used).item(), 2), "the loss is a float"),
    "by name": (lambda used: ({"a": loss(used)}, {"a": 2}), "began with a single loss"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_changes_nothing(
    given: Callable[[Used], tuple[Any, Any]], message: str
) -> None:
    used = Used()
    there = gradients(used.net)
    with pytest.raises(WindowError, match=message):
        used.window.backward(*given(used))

    assert difference(gradients(used.net), there) == 0 and len(used.window) == 2
    used.add(used.parts[2])
    used.window.close()
    assert difference(gradients(used.net), used.expected(used.parts[:3])) <= 1e-14


def test_the_first_micro_batch_is_checked_before_gradients_are_put_aside() -> None:
    net = model()
    summed(net, batches()[0]).backward()
    before = [parameter.grad for parameter in net.parameters()]
    with pytest.raises(WindowError, match="no graph"):
        Window(net).backward(torch.zeros(()), count=1)

    assert all(p.grad is old for p, old in zip(net.parameters(), before, strict=True))


def test_closed_empty() -> None:
    with pytest.raises(WindowError, match=r"is empty: no loss has been added\. Call"):
        Window(model()).close()


def test_closed_twice() -> None:
    used = Used()
    used.window.close()
    there = gradients(used.net)
    with pytest.raises(WindowError, match="no loss has been added since it was closed"):
        used.window.close()

    assert difference(gradients(used.net), there) == 0


@pytest.mark.parametrize("zero", [0, 0.0, torch.tensor(0)], ids=str)
def test_a_total_of_zero_leaves_the_gradients_from_before(zero: Any) -> None:
    used = Used()
    used.window.discard()
    for part in used.parts[:2]:
        used.window.backward(summed(used.net, part), count=zero)
    with pytest.raises(WindowError, match="add up to 0"):
        used.window.close()

    assert difference(gradients(used.net), used.before) == 0
    used.add(used.parts[2])
    used.window.close()
    assert difference(gradients(used.net), used.expected(used.parts[2:3])) <= 1e-14


def step(used: Used) -> None:
    torch.optim.SGD(used.net.parameters(), lr=0.1).step()


MEDDLING: dict[str, tuple[Callable[[Used], object], str]] = {
    "step": (step, "4 parameters \\('embed.weight' first\\) changed while .* optimizer.step"),
    "zero_grad": (lambda used: used.net.zero_grad(), "`.grad` of 4 parameters .* vanished"),
    "zero_grad in place": (
        lambda used: used.net.zero_grad(set_to_none=False),
        "`.grad` of 4 parameters .* was written into",
    ),
    "clipping": (
        lambda used: nn.utils.clip_grad_norm_(used.net.parameters(), 0.01),
        "was written into .* clipping",
    ),
    "another backward": (lambda used: loss(used).backward(), "a backward that the window does not"),
}


@pytest.mark.parametrize("then", ["backward", "close"])
@pytest.mark.parametrize(("meddle", "message"), MEDDLING.values(), ids=MEDDLING.keys())
def test_meddling_is_noticed(meddle: Callable[[Used], object], message: str, then: str) -> None:
    used = Used()
    waiting = loss(used)
    meddle(used)
    there = gradients(used.net)
    with pytest.raises(WindowError, match=message):
        used.window.close() if then == "close" else used.window.backward(waiting, 2)
    for now, then_there in zip(gradients(used.net), there, strict=True):
        assert now is then_there or torch.equal(now, then_there)  # type: ignore[arg-type]

    used.window.discard()
    assert difference(gradients(used.net), used.before) == 0


def test_between_windows_everything_is_allowed() -> None:
    used = Used()
    for meddle, _ in MEDDLING.values():
        used.window.close()
        meddle(used)
        for part in used.parts:
            used.add(part)
    assert used.window.close().micro_batches == 5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_embedding_that_renews_its_weight_is_no_step() -> None:
    net = model()
    net.embed.max_norm = 0.5
    window = Window(net)
    for batch in batches():
        window.backward(summed(net, batch), count=len(batch[1]))

    assert window.close().micro_batches == 5


def test_after_a_failed_backward_only_discard_is_left() -> None:
    used = Used()
    broken = loss(used)
    broken.register_hook(lambda gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        used.window.backward(broken, count=2)
    for call in (used.window.close, lambda: used.add(used.parts[2])):
        with pytest.raises(WindowError, match="failed half-way"):
            call()

    used.window.discard()
    assert difference(gradients(used.net), used.before) == 0
    used.add(used.parts[2])
    used.window.close()
    assert difference(gradients(used.net), used.expected(used.parts[2:3])) <= 1e-14


def test_an_error_of_the_body_changes_nothing() -> None:
    used = Used()
    with pytest.raises(ZeroDivisionError):
        1 / 0  # noqa: B018
    used.add(used.parts[2])
    used.window.close()

    assert difference(gradients(used.net), used.expected(used.parts[:3])) <= 1e-14


MODELS: dict[str, tuple[Any, str]] = {
    "none": ([], "`model` has no parameters"),
    "an activation": (nn.ReLU(), "`model` has no parameters"),
    "one tensor": (torch.ones(2), "`model` is a Tensor"),
    "a number": (3, "`model` is a int"),
    "modules": ([nn.Linear(1, 1)], "`model` has a Linear among its parameters"),
    "computed": ([torch.ones(1, requires_grad=True) * 2], "`model` has a computed tensor"),
}


@pytest.mark.parametrize(("given", "message"), MODELS.values(), ids=MODELS.keys())
def test_models_that_cannot_be(given: Any, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        Window(given).backward(torch.ones((), requires_grad=True) * 2, count=1)


def test_parameters_that_the_window_was_not_given() -> None:
    net, bias = model(), nn.Parameter(torch.zeros(()).double())
    window = Window(net)
    parts = batches()[:2]
    with pytest.warns(StrangerWarning, match=r"1 parameters .* \(of shape \[\]\)") as said:
        for part in parts:
            window.backward(summed(net, part) + bias, count=len(part[1]))

    assert len(said) == 1 and said[0].filename == __file__
    bias.requires_grad_(False)
    window.close()


def test_an_accelerator_that_divides_itself() -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = nn.Linear(2, 1)
    with pytest.raises(WindowError, match="gradient_accumulation_steps=4, which divides"):
        Window(model).backward(
            model(torch.ones(3, 2)).sum(), count=3, backward=accelerator.backward
        )
    assert model.weight.grad is None


def test_an_empty_window_is_a_window() -> None:
    assert Window(nn.Linear(2, 1))
