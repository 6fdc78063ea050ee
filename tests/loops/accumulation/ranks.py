"""What two processes run with DDP: each function returns facts of its rank."""

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gradwright.loops import Window, WindowError, windows
from tests.loops.accumulation.small import (
    Batch,
    batches,
    difference,
    gradients,
    mean_gradients,
    model,
    plus,
    summed,
)

SIZE = 3
TOKENS = ((1, 6, 2, 5, 3), (4, 2, 7, 8))  # of each rank: the last windows have 2 and 1
EVEN = ((1, 6, 2, 5, 3), (4, 2, 7, 8, 900))
Facts = dict[str, Any]


def of_rank(tokens: Sequence[Sequence[int]], rank: int) -> list[Batch]:
    torch.manual_seed(rank)
    return [(torch.randint(11, (n,)), torch.randint(7, (n,))) for n in tokens[rank]]


def of_window(tokens: Sequence[Sequence[int]], number: int) -> list[Batch]:
    """The micro-batches of one window on all ranks."""
    here = slice(number * SIZE, (number + 1) * SIZE)
    return [batch for rank in range(2) for batch in of_rank(tokens, rank)[here]]


class Reductions:
    """A hook of DDP that counts how often it sends gradients."""

    def __init__(self, ddp: Any, ranks: int = 2) -> None:
        self.count, self.ranks = 0, ranks
        ddp.register_comm_hook(None, self._hook)

    def _hook(
        self,
        _: object,
        bucket: dist.GradBucket,  # type: ignore[name-defined]
    ) -> torch.futures.Future[Tensor]:
        self.count += 1
        mean = bucket.buffer() / self.ranks
        dist.all_reduce(mean)  # waits here: a callback in Python may hang when gloo's threads end
        future: torch.futures.Future[Tensor] = torch.futures.Future()
        future.set_result(mean)
        return future


def train(
    net: nn.Module,
    given: Any,
    tokens: Sequence[Sequence[int]],
    found: Callable[[], list[Tensor | None]],
    backward: Callable[[Tensor], object] | None = None,
    before: Sequence[Tensor | None] = (),
) -> Facts:
    """One epoch; how far each window is from the same one in one process, and its facts."""
    twin, facts = model(torch.float32), Facts(differences=[], counts=[], losses=[], lengths=[])
    for number, window in enumerate(windows(of_rank(tokens, dist.get_rank()), SIZE, given)):
        for batch in window:
            window.backward(summed(net, batch), count=len(batch[1]), backward=backward)
        facts["lengths"].append(len(window))
        mean = window.close()
        expected = mean_gradients(twin, of_window(tokens, number))
        if before:
            expected = plus(before, expected)
        facts["differences"].append(difference(found(), expected))
        facts["counts"].append(mean.count)
        facts["losses"].append(mean.loss.item())
        for parameter in net.parameters():
            parameter.grad = None
        before = ()
    return facts


def ddp() -> Facts:
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net)
    reductions = Reductions(wrapped)
    facts = train(wrapped, wrapped, TOKENS, lambda: gradients(net))
    return facts | {"reductions": reductions.count}


def ddp_options() -> Facts:
    """DDP's other ways; with a static graph the very first pass has to exchange gradients, too."""
    facts = Facts(differences=[], reductions=[])
    for option in ("find_unused_parameters", "gradient_as_bucket_view", "static_graph"):
        net = model(torch.float32)
        options: dict[str, Any] = {option: True}
        wrapped = DistributedDataParallel(net, **options)
        reductions = Reductions(wrapped)
        found = functools.partial(gradients, net)
        facts["differences"] += train(wrapped, wrapped, TOKENS, found)["differences"]
        facts["reductions"].append(reductions.count)
    return facts


def ddp_inside() -> Facts:
    """The window is given the module inside, or parameters: the wrapper around them is found."""
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net)
    reductions = Reductions(wrapped)
    facts = train(wrapped, net, TOKENS, lambda: gradients(net))
    again = train(wrapped, list(net.parameters()), TOKENS, lambda: gradients(net))
    facts["differences"] += again["differences"]
    return facts | {"reductions": reductions.count / 2}


def ddp_bucket_views() -> Facts:
    """`.grad` is memory of DDP, and holds something before the first window."""
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net, gradient_as_bucket_view=True)
    summed(wrapped, batches()[0]).backward()
    return train(wrapped, wrapped, TOKENS, lambda: gradients(net), before=gradients(net))


def ddp_by_hand() -> Facts:
    """One `Window`, with and without deferral: ranks agree, and reductions are fewer."""
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net)
    reductions, window = Reductions(wrapped), Window(wrapped)
    twin, facts = model(torch.float32), Facts(differences=[], reductions=[])
    parts = of_rank(EVEN, dist.get_rank())[:SIZE]
    for is_deferred in (False, True):
        before = reductions.count
        for place, batch in enumerate(parts):
            with window.deferred() if is_deferred and place < SIZE - 1 else nullcontext():
                window.backward(summed(wrapped, batch), count=len(batch[1]))
        window.close()
        expected = mean_gradients(twin, of_window(EVEN, 0))
        facts["differences"].append(difference(gradients(net), expected))
        facts["reductions"].append(reductions.count - before)
        net.zero_grad()
    return facts


def errors() -> Facts:
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net)
    window, batch = Window(wrapped), batches()[1]
    facts = Facts()

    def refused(name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except WindowError as error:
            facts[name] = str(error)
        facts[f"{name}: gradients"] = sum(gradient is not None for gradient in gradients(net))

    with window.deferred():
        window.backward(summed(wrapped, batch), count=6)
    refused("deferred", window.close)
    window.discard()

    window.backward(summed(wrapped, batch), count=0)
    refused("zero", window.close)

    losses = {"a": summed(wrapped, batch)}
    refused("several", lambda: window.backward(losses, count={"a": 6}))

    window.backward(summed(wrapped, batch), count=6 * dist.get_rank())
    facts["zero here"] = window.close().count
    return facts


def uneven() -> Facts:
    """Rank 1 has no batch for a second window."""
    net = model(torch.float32)
    wrapped = DistributedDataParallel(net)
    facts, parts = Facts(closed=0), of_rank(TOKENS, dist.get_rank())
    try:
        for window in windows(parts if dist.get_rank() == 0 else parts[:SIZE], SIZE, wrapped):
            for batch in window:
                window.backward(summed(wrapped, batch), count=len(batch[1]))
            window.close()
            facts["closed"] += 1
    except WindowError as error:
        facts["error"] = str(error)
    return facts


def accelerate() -> Facts:
    from accelerate import Accelerator  # type: ignore[import-untyped]

    accelerator = Accelerator(cpu=True)
    net = model(torch.float32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    wrapped, optimizer = accelerator.prepare(net, optimizer)
    reductions = Reductions(wrapped)
    facts = train(wrapped, wrapped, TOKENS, lambda: gradients(net), accelerator.backward)
    return facts | {"reductions": reductions.count, "ranks": accelerator.num_processes}
