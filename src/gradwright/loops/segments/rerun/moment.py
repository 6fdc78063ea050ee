"""What a forward pass finds beside its inputs, so that a second one finds the same."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradwright.loops.segments.rerun.buffers import Buffer, as_before

_DEVICES = ("cpu", "cuda", "mps", "xpu")

Randomness = dict[str, list[Tensor]]
"""The states of the random number generators: of each kind of device, one per device in use."""


@dataclass(frozen=True)
class Moment:
    """The random numbers to come, autocast, and the buffers that forward passes change."""

    random: Randomness
    autocast: tuple[tuple[str, torch.dtype, bool], ...]  # device, type, weights are cached
    buffers: Sequence[tuple[Buffer, Tensor]]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Within the block it is this moment; afterwards it is what it was before the block."""
        now = randomness()
        try:
            _set_randomness(self.random, now)
            with ExitStack() as stack:
                for device, dtype, cached in self.autocast:
                    autocast = torch.autocast(device, dtype, cache_enabled=cached)
                    stack.enter_context(autocast)
                stack.enter_context(as_before(self.buffers))
                yield
        finally:
            _set_randomness(now, {})


def moment(buffers: Sequence[Buffer], before: Moment | None) -> Moment:
    """This moment. What is the same as at the moment `before` is kept once."""
    return Moment(
        _unless_equal(randomness(), before),
        tuple(_autocast()),
        [(buffer, buffer.copy()) for buffer in buffers],
    )


def randomness() -> Randomness:
    """The state of every generator that was used so far."""
    found = {"cpu": [torch.get_rng_state()]}
    for kind in _DEVICES[1:]:
        module: Any = getattr(torch, kind, None)
        if module is not None and module.is_available() and _is_started(module):
            many = hasattr(module, "get_rng_state_all")
            found[kind] = module.get_rng_state_all() if many else [module.get_rng_state()]
    return found


def _set_randomness(wanted: Randomness, now: Randomness) -> None:
    """Set the generators, those apart that are there already."""
    if wanted is now:
        return
    for kind, states in wanted.items():
        if kind == "cpu":
            torch.set_rng_state(states[0])
            continue
        module: Any = getattr(torch, kind)
        if len(states) == 1:
            module.set_rng_state(states[0])
        else:
            module.set_rng_state_all(states)


def _is_started(module: Any) -> bool:
    return not hasattr(module, "is_initialized") or bool(module.is_initialized())


def _unless_equal(now: Randomness, before: Moment | None) -> Randomness:
    """5 kB per segment and device are saved where no random number is drawn."""
    if before is None or now.keys() != before.random.keys():
        return now
    pairs = [
        (new, old) for kind in now for new, old in zip(now[kind], before.random[kind], strict=True)
    ]
    return before.random if all(torch.equal(new, old) for new, old in pairs) else now


def _autocast() -> Iterator[tuple[str, torch.dtype, bool]]:
    for device in _DEVICES:
        if torch.is_autocast_enabled(device):
            yield device, torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled()
