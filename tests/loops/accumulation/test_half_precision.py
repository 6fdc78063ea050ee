"""Sums in float16 do not overflow, and a GradScaler works as ever."""

import pytest
import torch
from torch import Tensor, nn

from gradwright.loops import Window
from tests.loops.accumulation.small import (
    batches,
    difference,
    grad,
    gradients,
    mean_gradients,
    model,
    summed,
)


def steep(rows: int, scale: float = 1000.0) -> tuple[nn.Linear, Tensor]:
    """The gradient of the mean is `scale`, that of the sum rows times as large."""
    torch.manual_seed(0)
    net = nn.Linear(1, 1, bias=False).half()
    return net, torch.full((rows, 1), scale, dtype=torch.float16)


@pytest.mark.parametrize("size", [None, 4])
def test_float16_does_not_overflow(size: int | None) -> None:
    net, x = steep(rows=200)  # 200 000 is more than float16 has
    window = Window(net, size=size)
    for _ in range(4):
        window.backward(net(x).sum(dtype=torch.float32), count=len(x))
    window.close()

    assert grad(net.weight).item() == pytest.approx(1000, rel=0.01)


def test_without_the_division_it_overflows() -> None:
    net, x = steep(rows=200)
    net(x).sum(dtype=torch.float32).backward()

    assert grad(net.weight).isinf()


def test_a_size_keeps_long_windows_from_overflowing() -> None:
    net, x = steep(rows=2)
    window = Window(net, size=128)
    for _ in range(128):
        window.backward(net(x).sum(dtype=torch.float32), count=len(x))
    window.close()

    assert grad(net.weight).item() == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("rows", [(200, 1, 200), (1, 200, 200)], ids=["less", "more"])
def test_the_window_before_says_what_to_expect_but_not_alone(rows: tuple[int, ...]) -> None:
    """A window of the first rows, then one of both others."""
    net, x = steep(rows=200)
    window = Window(net)
    for parts in (rows[:1], rows[1:]):
        net.zero_grad()
        for n in parts:
            window.backward(net(x[:n]).sum(dtype=torch.float32), count=n)
        window.close()

    assert grad(net.weight).item() == pytest.approx(1000, rel=0.01)


@pytest.mark.parametrize("way", ["scaler", "backward"])
def test_with_a_grad_scaler(way: str) -> None:
    net = model(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    window = Window(net, scaler=scaler if way == "scaler" else None)
    run = None if way == "scaler" else lambda loss: scaler.scale(loss).backward()
    for batch in batches():
        window.backward(summed(net, batch), count=len(batch[1]), backward=run)
    window.close()
    scaler.unscale_(optimizer)

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-6


def test_the_scaler_still_sees_what_overflowed() -> None:
    net = model(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net.out.weight.detach().clone()
    window = Window(net, scaler=scaler)
    for batch, factor in zip(batches(), (1, 1, 1e38, 1, 1), strict=True):
        window.backward(factor * summed(net, batch), count=len(batch[1]))
    window.close()
    scaler.step(optimizer)
    scaler.update()

    assert torch.equal(net.out.weight, before)
    assert scaler.get_scale() == 2.0**9
