"""What two processes run with FSDP2: each function returns facts of its rank."""

import functools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from gradwright.loops import Window, WindowError, windows
from tests.loops.accumulation.ranks import EVEN, SIZE, TOKENS, Facts, of_rank, of_window, train
from tests.loops.accumulation.small import Small, difference, mean_gradients, model, summed


def fsdp() -> Facts:
    net = sharded(("embed", "hidden", "out", ""))
    calls = _reduce_scatters()
    facts = train(net, net, EVEN, lambda: gathered(net))
    return facts | {"reductions": len(calls) / 3}


def fsdp_options() -> Facts:
    """Replicas of shards, and gradients that are summed in place of averaged."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    facts = Facts(differences=[])
    for shape in ((2, 1), (1, 2), (2,)):
        net = sharded(())
        names = ("replicas", "shards")[-len(shape) :]
        fully_shard(net, mesh=init_device_mesh("cpu", shape, mesh_dim_names=names))
        if len(shape) == 1:
            net.set_gradient_divide_factor(1.0)  # type: ignore[operator]
            net.set_force_sum_reduction_for_comms(True)  # type: ignore[operator]
        found = functools.partial(gathered, net)
        facts["differences"] += train(net, net, EVEN, found)["differences"]
    return facts


def sharded(parts: Sequence[str] = ("",)) -> Small:
    """The model in FSDP2, which wants one kind of parameter in a group: none is frozen."""
    from torch.distributed.fsdp import fully_shard

    net = model(torch.float32)
    net.hidden.bias.requires_grad_(True)
    for part in parts:
        fully_shard(net.get_submodule(part))
    return net


def gathered(net: Small) -> list[Tensor | None]:
    """The gradients of all ranks' shards; None for the parameter that is frozen elsewhere."""
    shards: dict[str, Any] = {name: p.grad for name, p in net.named_parameters()}
    return [None if name == "hidden.bias" else g.full_tensor() for name, g in shards.items()]


def fsdp_uneven() -> Facts:
    """The second window has two micro-batches here and one there."""
    net, facts = sharded(), Facts(closed=0)
    try:
        for window in windows(of_rank(TOKENS, dist.get_rank()), SIZE, net):
            for batch in window:
                window.backward(summed(net, batch), count=len(batch[1]))
            window.close()
            facts["closed"] += 1
    except WindowError as error:
        facts["error"] = str(error)
    return facts


def fsdp_discarded() -> Facts:
    """What FSDP2 keeps beside `.grad` goes with a discarded window."""
    net = sharded()
    window, parts = Window(net), of_rank(EVEN, dist.get_rank())[:SIZE]
    with window.deferred():
        window.backward(summed(net, parts[0]), count=1)
    window.discard()
    for place, batch in enumerate(parts):
        with window.deferred() if place < SIZE - 1 else nullcontext():
            window.backward(summed(net, batch), count=len(batch[1]))
    window.close()
    expected = mean_gradients(model(torch.float32), of_window(EVEN, 0))
    return Facts(differences=[difference(gathered(net), expected)])


def _reduce_scatters() -> list[int]:
    """A list that grows with each reduce-scatter from here on."""
    from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultReduceScatter

    calls: list[int] = []
    original = DefaultReduceScatter.__call__

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        return original(*arguments, **options)

    DefaultReduceScatter.__call__ = counted  # type: ignore[method-assign]
    return calls
