"""A model with layers of all, of two, and of one task, and its training."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from gradwright.engine import backward
from gradwright.monitor import ConflictMonitor
from gradwright.weighting import UPGrad

TASKS = ("a", "b", "c")


class Shared(nn.Module):
    """A trunk for all tasks, `experts.0` for a and b, `experts.1` for c, a head for each."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))
        self.noise = nn.Sequential(nn.BatchNorm1d(4, affine=False), nn.Dropout(dropout))
        self.experts = nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])
        self.heads = nn.ModuleDict({task: nn.Linear(3, 1) for task in TASKS})

    def forward(self, inputs: Tensor) -> dict[str, Tensor]:
        features = self.noise(self.trunk(inputs))
        return {
            task: head(self.experts[task == "c"](features).tanh())
            for task, head in self.heads.items()
        }


def losses_of(model: Shared, step: int, *, absent: str | None = None) -> dict[str, Tensor | None]:
    """The losses of batch number `step`."""
    generator = torch.Generator().manual_seed(step)
    dtype = next(model.parameters()).dtype
    outputs = model(torch.randn(8, 5, generator=generator).to(dtype))
    losses = {
        task: (out - torch.randn(8, 1, generator=generator)).square().mean()
        for task, out in outputs.items()
    }
    return {task: None if task == absent else loss for task, loss in losses.items()}


def train(
    model: Shared,
    optimizer: torch.optim.Optimizer,
    steps: Iterable[int],
    monitor: ConflictMonitor | None = None,
) -> None:
    """Some steps with UPGrad, watched or not."""
    for step in steps:
        losses = losses_of(model, step)
        if monitor is not None:
            monitor.watch(losses)
        backward(losses, weighting=UPGrad())
        optimizer.step()
        optimizer.zero_grad()
