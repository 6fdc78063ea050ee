"""Deferral: backwards whose gradients stay on this rank until one that sends them all."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from torch import nn

from gradwright.loops.accumulation.distributed.wrapped import sharded_parts


class Deferral:
    """The model's own ways to defer: `no_sync` of DDP, the switch of FSDP2.

    Args:
        wrappers: The modules that exchange gradients; none for a plain model, where nothing is
            to defer.
    """

    def __init__(self, wrappers: Sequence[nn.Module]) -> None:
        self._switched = [part for wrapper in wrappers for part in sharded_parts(wrapper)]
        self._holding = [wrapper for wrapper in wrappers if not sharded_parts(wrapper)]
        self.is_on = False

    def __bool__(self) -> bool:
        return bool(self._switched or self._holding)

    @property
    def is_sharded(self) -> bool:
        """Whether FSDP2 is among the wrappers."""
        return bool(self._switched)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Forwards and backwards within the block exchange no gradients."""
        if not self or any(_learns_its_graph(wrapper) for wrapper in self._holding):
            yield
            return
        before = self.is_on
        with ExitStack() as stack:
            for wrapper in self._holding:
                stack.enter_context(wrapper.no_sync())  # type: ignore[operator]
            stack.callback(self._switch, not before)
            self._switch(False)
            self.is_on = True
            try:
                yield
            finally:
                self.is_on = before

    def forget(self) -> None:
        """Drop the gradients that FSDP2 keeps beside `.grad` until they are sent."""
        for part in self._switched:
            for group in part._get_fsdp_state()._fsdp_param_groups:
                for parameter in group.fsdp_params:
                    parameter.unsharded_accumulated_grad = None
                    gathered = getattr(parameter, "_unsharded_param", None)
                    if gathered is not None:
                        gathered.grad = None

    def _switch(self, sync: bool) -> None:
        for part in self._switched:
            part.set_requires_gradient_sync(sync, recurse=False)


def _learns_its_graph(wrapper: nn.Module) -> bool:
    """DDP(static_graph=True) does in its first pass, which must exchange gradients (torch 2.13)."""
    is_static = bool(getattr(wrapper, "static_graph", False))
    return is_static and not getattr(wrapper, "_static_graph_delay_allreduce_enqueued", True)
