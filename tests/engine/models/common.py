"""What the small multi-task models have in common."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Losses = dict[str, Tensor]
ROWS = 6  # of every batch
WIDTH = 4  # of the features that the heads read


@dataclass(frozen=True)
class Model:
    """A model with its batch: each call of `losses` is a forward."""

    module: Any  # a ModuleList, whose parts are reached by position
    losses: Callable[[], Losses]


Build = Callable[[], Model]


class Heads(nn.Module):
    """One linear head per task, each with a loss of another shape."""

    KINDS = (torch.square, F.softplus, torch.tanh)

    def __init__(self, width: int = WIDTH, n_tasks: int = 3) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(width, 2) for _ in range(n_tasks))

    def loss(self, task: int, features: Tensor) -> Tensor:
        kind = self.KINDS[task % len(self.KINDS)]
        return kind(self.heads[task](features)).mean()

    def forward(self, features: Tensor | Iterable[Tensor]) -> Losses:
        """Losses from the features that all heads read, or from one tensor per head."""
        each = [features] * len(self.heads) if isinstance(features, Tensor) else features
        return {f"task{k}": self.loss(k, mine) for k, mine in enumerate(each)}


def of_trunk(trunk: nn.Module, batch: Tensor, width: int = WIDTH) -> Model:
    """Heads on what `trunk` makes of `batch`."""
    heads = Heads(width)
    return Model(nn.ModuleList([trunk, heads]), lambda: heads(trunk(batch)))


def mlp(*layers: nn.Module) -> nn.Sequential:
    """A linear layer before and after `layers`."""
    return nn.Sequential(nn.Linear(5, WIDTH), *layers, nn.Linear(WIDTH, WIDTH))


def batch() -> Tensor:
    """Inputs [row, 5]."""
    return torch.randn(ROWS, 5)
