"""Small recurrent models in float64, and sequences for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROWS, TIMES, INPUTS, WIDTH = 4, 100, 5, 8

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Memory:
    """A state with things in it that are no tensors."""

    fast: Tensor
    slow: dict[str, Tensor]
    seen: int
    nothing: None = None


class Leaky(nn.Module):
    """A recurrence with two speeds, whose state is a dataclass."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.over = nn.Linear(INPUTS, WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, memory: Memory | None) -> tuple[Tensor, Memory]:
        if memory is None:
            zeros = x.new_zeros(len(x), WIDTH)
            memory = Memory(zeros, {"mean": zeros}, 0)
        outs = []
        for time in range(x.shape[1]):
            slow = memory.slow["mean"]
            both = torch.cat([memory.fast, slow], dim=1)
            fast = torch.tanh(self.into(x[:, time]) + self.over(both))
            slow = 0.9 * slow + 0.1 * fast
            memory = replace(memory, fast=fast, slow={"mean": slow}, seen=memory.seen + 1)
            outs.append(fast + slow)
        return torch.stack(outs, dim=1), memory


class OverTimes(nn.BatchNorm1d):
    """BatchNorm of [row, time, channel]."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.flatten(0, 1)).unflatten(0, x.shape[:2])


class Net(nn.Module):
    """A recurrent body and a head, called with a segment `(inputs, targets)` and a state."""

    def __init__(self, body: nn.Module, middle: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.middle = body, middle or nn.Identity()
        self.head = nn.Linear(WIDTH, INPUTS)

    def forward(self, segment: Batch, state: Any) -> tuple[Tensor, Any]:
        inputs, targets = segment
        out, state = self.body(inputs, state)
        return F.mse_loss(self.head(self.middle(out)).to(targets.dtype), targets), state


BODIES: dict[str, Callable[[], nn.Module]] = {
    "LSTM": lambda: nn.LSTM(INPUTS, WIDTH, batch_first=True),
    "GRU": lambda: nn.GRU(INPUTS, WIDTH, num_layers=2, batch_first=True),
    "dataclass": Leaky,
}


def net(body: str = "LSTM", middle: nn.Module | None = None) -> Net:
    """The same parameters each time."""
    torch.manual_seed(0)
    return Net(BODIES[body](), middle).double()


def batch(times: int = TIMES, rows: int = ROWS) -> Batch:
    """Inputs and targets [row, time, input]."""
    generator = torch.Generator().manual_seed(1)
    shape = (rows, times, INPUTS)
    inputs, targets = (
        torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    return inputs, targets


def flat_gradient(module: nn.Module) -> Tensor:
    """All gradients in one vector; they are None afterwards."""
    grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in module.parameters()]
    module.zero_grad()
    return torch.cat([grad.flatten() for grad in grads])


def relative_error(found: Tensor, expected: Tensor) -> float:
    """The length of the difference, in lengths of what is expected."""
    return float((found - expected).norm() / expected.norm())


def assert_same_parameters(found: nn.Module, expected: nn.Module) -> None:
    """To the last bit."""
    pairs = zip(found.parameters(), expected.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
