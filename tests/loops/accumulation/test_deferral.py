"""Deferral in one process: DDP with one rank sends its gradients once per window."""

import copy
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from gradwright.loops import Window, WindowError, windows
from gradwright.weighting import PCGrad
from tests.loops.accumulation.ranks import Reductions
from tests.loops.accumulation.small import (
    Batch,
    batches,
    difference,
    gradients,
    mean_gradients,
    model,
    summed,
)

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch has no torch.distributed")


@pytest.fixture
def ddp() -> Iterator[DistributedDataParallel]:
    # Not gloo: in one process with others its threads may wait for the GIL while its destructor
    # waits for them (torch 2.13). test_ranks.py runs the real one, in processes of its own.
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield DistributedDataParallel(model())
    dist.destroy_process_group()


def test_one_reduction_per_window(ddp: DistributedDataParallel) -> None:
    reductions, parts = Reductions(ddp, ranks=1), batches()
    for number, window in enumerate(windows(parts, size=3, model=ddp)):
        for batch in window:
            window.backward(summed(ddp, batch), count=len(batch[1]))
        window.close()
        expected = mean_gradients(ddp.module, parts[3 * number : 3 * number + 3])
        assert difference(gradients(ddp.module), expected) <= 1e-14
        assert reductions.count == number + 1
        ddp.zero_grad()

    assert reductions.count == 2


def test_one_batch_is_held_back_within_a_window_only(ddp: DistributedDataParallel) -> None:
    Reductions(ddp, ranks=1)  # the fake backend has no reduction of its own for DDP
    loaded = []

    def loader() -> Iterator[Batch]:
        for place, batch in enumerate(batches()):
            loaded.append(place)
            yield batch

    seen = []
    for window in windows(loader(), size=3, model=ddp):
        for batch in window:
            seen.append(len(loaded))
            window.backward(summed(ddp, batch), count=len(batch[1]))
        window.close()

    assert seen == [2, 3, 3, 5, 5]


def test_the_window_is_left_early(ddp: DistributedDataParallel) -> None:
    with pytest.raises(WindowError, match=r"was deferred.* to its end"):
        for window in windows(batches(), size=3, model=ddp):
            for batch in window:
                window.backward(summed(ddp, batch), count=len(batch[1]))
                break
            assert ddp.require_backward_grad_sync
            window.close()


def test_an_error_in_the_body_ends_the_deferral(ddp: DistributedDataParallel) -> None:
    def run() -> None:
        for window in windows(batches(), size=3, model=ddp):
            for _ in window:
                assert not ddp.require_backward_grad_sync
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert ddp.require_backward_grad_sync


def test_several_losses_are_refused(ddp: DistributedDataParallel) -> None:
    window = Window(ddp, weighting=PCGrad())
    loss = summed(ddp, batches()[0])
    with pytest.raises(WindowError, match="are not averaged over ranks"):
        window.backward({"a": loss, "b": loss * 2}, count={"a": 1, "b": 1})


def test_a_plain_model_defers_nothing() -> None:
    net = model()
    window = Window(net)
    with window.deferred():
        for batch in batches():
            window.backward(summed(net, batch), count=len(batch[1]))
    window.close()

    assert difference(gradients(net), mean_gradients(net, batches())) <= 1e-14
    assert torch.is_grad_enabled()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("ddp")
def test_the_first_fsdp_is_refused() -> None:
    from torch.distributed.fsdp import FullyShardedDataParallel

    net = FullyShardedDataParallel(nn.Linear(2, 1), device_id=torch.device("cpu"))
    with pytest.raises(WindowError, match="fully_shard"):
        Window(net).backward(net(torch.ones(1, 2)).sum(), count=1)


@pytest.mark.usefixtures("ddp")
def test_a_module_with_its_window_can_be_copied() -> None:
    """Lightning's averaging of weights copies the module; a process group cannot be copied."""
    net = Owner()
    net.window.backward(summed(net, batches()[0]), count=1)
    net.window.close()
    twin = copy.deepcopy(net)
    net.zero_grad()
    twin.zero_grad()
    for batch in batches():
        twin.window.backward(summed(twin, batch), count=len(batch[1]))
    twin.window.close()

    assert difference(gradients(twin), mean_gradients(twin, batches())) <= 1e-14
    assert all(gradient is None for gradient in gradients(net))


class Owner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = model()
        self.window = Window(self)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.net(tokens)
        return logits
