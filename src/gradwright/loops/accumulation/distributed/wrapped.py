"""The distributed wrappers around a model: who averages its gradients, over which ranks."""

import gc
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


def wrappers_of(model: nn.Module | list[Tensor], parameters: Sequence[Tensor]) -> list[nn.Module]:
    """The outermost modules that exchange gradients between the processes that were joined.

    They are looked for in the model. Where it has none, it may be inside one itself, as a
    LightningModule is: then among all modules that are alive.
    """
    inside = list(_outermost(model)) if isinstance(model, nn.Module) else []
    if inside or dist.get_world_size() == 1:
        return inside
    wanted = {id(parameter) for parameter in parameters}
    return [
        module
        for module in gc.get_objects()
        if issubclass(type(module), nn.Module)  # not isinstance: that asks proxies for their class
        and _is_wrapper(module)
        and any(id(parameter) in wanted for parameter in _parameters(module))
    ]


def is_wrapped(model: nn.Module) -> bool:
    """Whether the module or a part of it exchanges gradients between ranks."""
    joined = dist.is_available() and dist.is_initialized()
    return joined and any(True for _ in _outermost(model))


def sharded_parts(wrapper: nn.Module) -> "list[FSDPModule]":
    """The FSDP2 modules of a wrapper."""
    from torch.distributed.fsdp import FSDPModule

    return [module for module in wrapper.modules() if isinstance(module, FSDPModule)]


def sharded_parameters(wrapper: nn.Module) -> Iterator[tuple[Tensor | None, Tensor]]:
    """FSDP2's parameters as gathered for computing (if they are), and as kept by this rank."""
    for module in sharded_parts(wrapper):
        for group in module._get_fsdp_state()._fsdp_param_groups:
            for parameter in group.fsdp_params:
                yield getattr(parameter, "_unsharded_param", None), parameter.sharded_param


def _outermost(module: nn.Module) -> Iterator[nn.Module]:
    if _is_wrapper(module):
        yield module
        return
    for child in module.children():
        yield from _outermost(child)


def _parameters(wrapper: nn.Module) -> Iterator[Tensor]:
    yield from wrapper.parameters()
    yield from (kept for _, kept in sharded_parameters(wrapper))


def _is_wrapper(module: nn.Module) -> bool:
    from torch.distributed.fsdp import FSDPModule

    return isinstance(module, FSDPModule) or callable(getattr(module, "no_sync", None))
