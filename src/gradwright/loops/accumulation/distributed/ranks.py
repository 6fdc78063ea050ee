"""The ranks that train one model: what they have to agree on."""

from __future__ import annotations  # torch may be built without what these name

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from gradwright.loops.accumulation.distributed.wrapped import sharded_parts
from gradwright.loops.errors import WindowError


@dataclass(frozen=True, slots=True)
class Ranks:
    """Those that average their gradients.

    Every method is a collective: all ranks call it, or all wait.
    """

    groups: tuple[dist.ProcessGroup, ...]  # summed over one after the other
    averaged_by: float  # gradients are the sums over all ranks, divided by this
    device: torch.device

    def total(self, values: Sequence[float | Tensor]) -> list[float]:
        """The sums of numbers over all ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def largest(self, value: float | Tensor) -> float:
        """The largest of a number on any rank."""
        return self._reduced([value], dist.ReduceOp.MAX)[0]

    def begin(self, *, ended: bool) -> None:
        """Begin a window together, or say that this rank has no more of them.

        Raises:
            WindowError: on every rank, where some have a further window and others have none.
        """
        some_ended, some_begin = self._reduced([float(ended), float(not ended)], dist.ReduceOp.MAX)
        if some_ended and some_begin:
            here = "has no batch left" if ended else "has further batches"
            raise WindowError(
                f"the ranks have different numbers of windows: rank {dist.get_rank()} {here}, "
                "others not so. All ranks must take every optimizer step: give each as many "
                "batches (DistributedSampler does), or stop all after the same window."
            )

    def go_on(self, *, last: bool) -> None:
        """Run a micro-batch together: FSDP2 gathers its parameters from all ranks each time.

        Raises:
            WindowError: on every rank, where it is the last of the window on some only.
        """
        some_last, some_not = self._reduced([float(last), float(not last)], dist.ReduceOp.MAX)
        if some_last and some_not:
            raise WindowError(
                "the ranks have different numbers of micro-batches in this window: FSDP gathers "
                "the parameters from all ranks in each of them, so they must have as many. Give "
                "each rank as many batches (DistributedSampler does). DDP needs no such thing."
            )

    def _reduced(
        self, values: Sequence[float | Tensor], how: dist.ReduceOp.RedOpType
    ) -> list[float]:
        parts = [torch.as_tensor(v, dtype=torch.float64, device=self.device) for v in values]
        packed = torch.stack([part.reshape(()) for part in parts])
        for group in self.groups:
            dist.all_reduce(packed, how, group=group)
        found: list[float] = packed.tolist()
        return found


def ranks_of(wrappers: Sequence[nn.Module], parameters: Sequence[Tensor]) -> Ranks | None:
    """The ranks that the wrappers exchange gradients with; None without wrappers.

    Raises:
        WindowError: the wrappers average over different ranks, or are FSDP's first version.
    """
    found = {_exchange(wrapper) for wrapper in wrappers}
    if not found:
        return None
    if len(found) > 1:
        raise WindowError(
            "the parts of `model` average their gradients over different groups of ranks: a "
            "window needs one mean. Give each part a window of its own."
        )
    groups, divisor = found.pop()
    size = 1
    for group in groups:
        size *= group.size()
    return Ranks(groups, size if divisor is None else divisor, parameters[0].device)


def _exchange(wrapper: nn.Module) -> tuple[tuple[dist.ProcessGroup, ...], float | None]:
    """The groups of ranks, and what gradients are divided by where it is not their number."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    if isinstance(wrapper, FullyShardedDataParallel):
        raise WindowError(
            "`model` is in FullyShardedDataParallel, whose gradients change places within a "
            "window: shard it with torch.distributed.fsdp.fully_shard (FSDP2)."
        )
    parts = [
        g for part in sharded_parts(wrapper) for g in part._get_fsdp_state()._fsdp_param_groups
    ]
    if not parts:
        group: dist.ProcessGroup | None = getattr(wrapper, "process_group", None)
        return (group or dist.distributed_c10d._get_default_group(),), None
    kinds = {(_groups(part.mesh_info), part.gradient_divide_factor) for part in parts}
    if len(kinds) > 1:
        raise WindowError(
            "the sharded parts of `model` average their gradients over different ranks or by "
            "different factors: a window needs one mean. Give each part a window of its own."
        )
    return kinds.pop()


def _groups(mesh: object) -> tuple[dist.ProcessGroup, ...]:
    names = ("shard_process_group", "replicate_process_group")
    found = (getattr(mesh, name, None) for name in names)
    return tuple(group for group in found if group is not None)
