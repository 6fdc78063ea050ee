"""A window's gradient is that of the mean over all its terms, whatever is around it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops import Window
from tests.loops.accumulation.small import (
    TOKENS,
    batches,
    difference,
    grad,
    gradients,
    mean_gradients,
    model,
    plus,
    summed,
)


def filled(net: nn.Module, tokens: tuple[int, ...] = TOKENS, **options: object) -> Window:
    window = Window(net, **options)  # type: ignore[arg-type]
    for batch in batches(tokens):
        window.backward(summed(net, batch), count=len(batch[1]))
    return window


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float64, 1e-14), (torch.float32, 1e-6)], ids=str
)
@pytest.mark.parametrize("tokens", [TOKENS, (3,), (1, 1, 1), (0, 4, 2), (1, 900)], ids=str)
@pytest.mark.parametrize("size", [None, 4])
def test_it_is_the_gradient_of_the_mean(
    tokens: tuple[int, ...], size: int | None, dtype: torch.dtype, bound: float
) -> None:
    net = model(dtype)
    mean = filled(net, tokens, size=size).close()

    assert difference(gradients(net), mean_gradients(net, batches(tokens))) <= bound
    assert mean.count == sum(tokens) and mean.micro_batches == len(tokens)
    loss = sum(summed(net, batch).item() for batch in batches(tokens)) / sum(tokens)
    assert float(mean.loss) == pytest.approx(loss, rel=1e-6)
    assert mean.weights is None


def test_a_mean_of_means_would_be_wrong() -> None:
    """The bar above can fail: the usual way misses it by far."""
    net = model()
    for batch in batches():
        (summed(net, batch) / len(batch[1]) / len(TOKENS)).backward()

    assert difference(gradients(net), mean_gradients(net, batches())) > 0.1


COUNTS: dict[str, Callable[[int], float | Tensor]] = {
    "int": lambda n: n,
    "float": float,
    "int64": torch.tensor,
    "float32 [1]": lambda n: torch.tensor([float(n)]),
    "float16": lambda n: torch.tensor(n, dtype=torch.float16),
    "with a graph": lambda n: torch.tensor(float(n), requires_grad=True) * 1,
    "mixed": lambda n: torch.tensor(n) if n % 2 else n,
}


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS.keys())
def test_counts_may_be_numbers_or_tensors(count: Callable[[int], float | Tensor]) -> None:
    net = model()
    window = Window(net)
    for batch in batches():
        window.backward(summed(net, batch), count(len(batch[1])))

    assert window.close().count == sum(TOKENS)
    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_fractional_counts() -> None:
    net = model()
    window = Window(net)
    for batch in batches():
        window.backward(0.25 * summed(net, batch), count=0.25 * len(batch[1]))
    window.close()

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_gradients_from_before_are_added_and_not_divided() -> None:
    net = model()
    summed(net, batches()[0]).backward()
    before = [parameter.grad for parameter in net.parameters()]
    values = gradients(net)
    filled(net).close()

    expected = plus(values, mean_gradients(net, batches()))
    assert difference(gradients(net), expected) <= 1e-14
    assert all(now.grad is old for now, old in zip(net.parameters(), before, strict=True))


def test_discard_leaves_what_was_there() -> None:
    net = model()
    summed(net, batches()[0]).backward()
    before = [(p.grad, None if p.grad is None else p.grad.clone()) for p in net.parameters()]
    window = filled(net)
    window.discard()

    assert len(window) == 0
    for parameter, (gradient, values) in zip(net.parameters(), before, strict=True):
        assert parameter.grad is gradient
        assert (gradient is None) == (values is None)
        if gradient is not None and values is not None:
            assert torch.equal(gradient, values)


def test_a_window_can_be_used_again() -> None:
    net = model()
    window = filled(net)
    window.close()
    net.zero_grad()
    for batch in batches()[2:]:
        window.backward(summed(net, batch), count=len(batch[1]))

    assert len(window) == 3
    assert window.close().count == sum(TOKENS[2:])
    assert difference(gradients(net), mean_gradients(net, batches()[2:])) <= 1e-14


@pytest.mark.parametrize("given", ["parameters", "repeated", "generator"])
def test_parameters_in_place_of_a_module(given: str) -> None:
    net = model()
    own = list(net.parameters())
    window = Window({"parameters": own, "repeated": own + own, "generator": iter(own)}[given])
    for batch in batches():
        window.backward(summed(net, batch), count=len(batch[1]))
    window.close()

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_tied_weights() -> None:
    net = model()
    net.hidden = nn.Linear(6, 6).double()
    net.out = nn.Linear(6, 11, bias=False).double()
    net.out.weight = net.embed.weight
    filled(net).close()

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


@pytest.mark.parametrize("before", [None, "sparse", "dense"])
def test_sparse_gradients(before: str | None) -> None:
    net = model()
    net.embed.sparse = True
    if before:
        summed(net, batches()[0]).backward()
    if before == "dense":
        net.embed.weight.grad = grad(net.embed.weight).to_dense()
    values = gradients(net)
    filled(net).close()

    assert grad(net.embed.weight).is_sparse == (before != "dense")
    assert difference(gradients(net), plus(values, mean_gradients(net, batches()))) <= 1e-14


def test_its_own_backward_is_run() -> None:
    net, seen = model(), list[float]()

    def run(loss: Tensor) -> None:
        seen.append(float(loss.detach()))
        loss.backward()

    window = Window(net)
    for batch in batches():
        window.backward(summed(net, batch), len(batch[1]), backward=run)
    window.close()

    assert len(seen) == len(TOKENS)
    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_the_graph_is_used_where_recording_is_off() -> None:
    """Some optimizers run their closure under no_grad."""
    net = model()
    window = Window(net)
    for batch in batches():
        loss = summed(net, batch)
        with torch.no_grad():
            window.backward(loss, count=len(batch[1]))
    window.close()

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_parameters_on_several_devices() -> None:
    net = model()
    with torch.device("meta"):
        away = nn.Linear(3, 3)
    window = Window([*net.parameters(), *away.parameters()])
    away.weight.grad = torch.empty_like(away.weight)
    for batch in batches():
        window.backward(summed(net, batch), count=len(batch[1]))
    window.close()

    assert away.weight.grad.device.type == "meta"
    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14


def test_a_count_on_a_device_stays_there() -> None:
    """A meta tensor has no value: whoever reads it before `close` fails."""
    net = model().to("meta")
    window = Window(net)
    for batch in batches():
        loss = summed(net, (batch[0].to("meta"), batch[1].to("meta")))
        window.backward(loss, torch.tensor(len(batch[1]), device="meta"))

    assert len(window) == len(TOKENS)
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        window.close()


def test_hooks_on_parameters_see_each_micro_batch() -> None:
    net, calls = model(), list[Tensor]()
    net.out.weight.register_hook(calls.append)
    filled(net).close()

    assert len(calls) == len(TOKENS)
