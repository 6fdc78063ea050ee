"""Segments under DistributedDataParallel: uneven numbers of them do not hang, ranks stay equal."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.algorithms.join import Join
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

import gradwright as gw
from tests.loops.segments.models import batch, flat_gradient, net, relative_error

LENGTHS = {"even": (60, 60), "uneven": (60, 40)}  # times on each rank


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def worker(rank: int, port: int, case: str, how: dict, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = net()
    wrapped = DistributedDataParallel(model)
    segments = gw.tbptt(wrapped, 20, **how)(on_rank(rank, case))
    one_step_per_window(wrapped, segments) if how else one_step_per_segment(wrapped, segments)
    results = {"gradient": flat_gradient(model), "weights": weights(model)}
    torch.save(results, Path(folder) / f"{rank}.pt")
    dist.barrier()
    os._exit(0)  # gloo's destructor may wait for threads that wait for the GIL (torch 2.13)


def on_rank(rank: int, case: str) -> Any:
    rows, times = slice(2 * rank, 2 * rank + 2), LENGTHS[case][rank]
    return tuple(tensor[rows, :times] for tensor in batch())


def one_step_per_segment(model: DistributedDataParallel, segments: Any) -> None:
    """A rank that has no more segments joins in the reductions of the others."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for segment in segments:
            segment.loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def one_step_per_window(model: DistributedDataParallel, segments: Any) -> None:
    """One reduction for all segments, however many a rank has."""
    with model.no_sync():
        for segment in segments:
            segment.loss.backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(2)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def on_two_ranks(case: str, how: dict, folder: Path) -> list[dict[str, Tensor]]:
    context = spawn(
        worker, (free_port(), case, how, str(folder)), nprocs=2, join=False, daemon=True
    )
    assert context is not None
    finished = context.join(timeout=60) or context.join(timeout=60)
    if not finished:
        for process in context.processes:
            process.kill()
    assert finished, "the ranks hang"
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("case", LENGTHS)
def test_one_step_per_segment_keeps_the_ranks_equal(case: str, tmp_path: Path) -> None:
    first, second = on_two_ranks(case, {}, tmp_path)

    assert torch.equal(first["weights"], second["weights"])
    assert not torch.equal(first["weights"], weights(net()))


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"exact": True}, {"step": "window"}], ids=str)
def test_a_window_has_the_gradient_of_the_mean_over_ranks(how: dict, tmp_path: Path) -> None:
    first, second = on_two_ranks("uneven", how, tmp_path)

    assert torch.equal(first["gradient"], second["gradient"])
    model = net()
    for rank in range(2):
        for segment in gw.tbptt(model, 20, **how)(on_rank(rank, "uneven")):
            (segment.loss / 2).backward()
    assert relative_error(first["gradient"], flat_gradient(model)) <= 1e-12
