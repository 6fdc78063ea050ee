"""`windows` takes a loader's batches when it is their turn, `size` to a window."""

from collections.abc import Iterator

import pytest
import torch

from gradwright.loops import WindowError, windows
from tests.loops.accumulation.small import (
    TOKENS,
    Batch,
    batches,
    difference,
    gradients,
    mean_gradients,
    model,
    summed,
)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
@pytest.mark.parametrize("size", [1, 2, 4, 5, 9])
def test_every_window_is_exact(size: int, dtype: torch.dtype, bound: float) -> None:
    net, parts, done = model(dtype), batches(), 0
    for window in windows(parts, size=size, model=net):
        for batch in window:
            window.backward(summed(net, batch), count=len(batch[1]))
        mean = window.close()
        here = parts[done : done + size]
        assert difference(gradients(net), mean_gradients(net, here)) <= bound
        assert mean.micro_batches == len(here) and mean.count == sum(TOKENS[done : done + size])
        net.zero_grad()
        done += size

    assert done >= len(TOKENS) > done - size


def test_training_is_that_of_whole_batches() -> None:
    """Clipping, momentum and all: the same steps as with each window in one batch."""
    nets = model(), model()
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.01) for net in nets]

    def step(place: int) -> None:
        torch.nn.utils.clip_grad_norm_(nets[place].parameters(), 0.1)
        optimizers[place].step()
        optimizers[place].zero_grad()

    parts = batches()
    for _ in range(4):
        for window in windows(parts, size=2, model=nets[0]):
            for batch in window:
                window.backward(summed(nets[0], batch), count=len(batch[1]))
            window.close()
            step(0)
        for first in range(0, len(parts), 2):
            x, y = (torch.cat(side) for side in zip(*parts[first : first + 2], strict=True))
            (summed(nets[1], (x, y)) / len(y)).backward()
            step(1)

    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_batches_are_loaded_when_it_is_their_turn() -> None:
    net, loaded = model(), []

    def loader() -> Iterator[Batch]:
        for place, batch in enumerate(batches()):
            loaded.append(place)
            yield batch

    used = 0
    for window in windows(loader(), size=2, model=net):
        for batch in window:
            assert len(loaded) == used + 1
            window.backward(summed(net, batch), count=len(batch[1]))
            used += 1
        window.close()
        assert len(loaded) == used

    assert used == len(TOKENS)


def test_no_batches_no_windows() -> None:
    assert list(windows([], size=3, model=model())) == []


def test_a_window_left_open() -> None:
    net = model()
    with pytest.raises(WindowError, match=r"2 micro-batches was left without close\(\)"):
        for window in windows(batches(), size=2, model=net):
            for batch in window:
                window.backward(summed(net, batch), count=len(batch[1]))


def test_the_last_window_left_open() -> None:
    net = model()
    with pytest.raises(WindowError, match="5 micro-batches was left"):
        for window in windows(batches(), size=9, model=net):
            for batch in window:
                window.backward(summed(net, batch), count=len(batch[1]))


def test_a_discarded_window_may_go_on() -> None:
    net, closed = model(), 0
    for window in windows(batches(), size=2, model=net):
        for batch in window:
            window.backward(summed(net, batch), count=len(batch[1]))
        if len(window) == 2 and closed == 0:
            window.discard()
            assert all(gradient is None for gradient in gradients(net))
        else:
            window.close()
        closed += 1

    assert closed == 3


def test_micro_batches_may_be_left_out() -> None:
    net, parts = model(), batches()
    for window in windows(parts, size=5, model=net):
        for place, batch in enumerate(window):
            if place not in (1, 4):
                window.backward(summed(net, batch), count=len(batch[1]))
        assert window.close().micro_batches == 3

    assert difference(gradients(net), mean_gradients(net, [parts[0], parts[2], parts[3]])) <= 1e-14


def test_a_window_left_early_goes_on_with_the_next_batch() -> None:
    net, counts = model(), []
    for window in windows(batches(), size=4, model=net):
        for batch in window:
            window.backward(summed(net, batch), count=len(batch[1]))
            if len(window) == 2:
                break
        counts.append(window.close().count)

    assert counts == [1 + 6, 2 + 5, 3]


@pytest.mark.parametrize("size", [0, -1, 2.5, None, "4"])
def test_sizes_that_cannot_be(size: object) -> None:
    with pytest.raises(WindowError, match="`size` is"):
        windows(batches(), size=size, model=model())  # type: ignore[arg-type]
