"""Multi-task models on CPU: W1 a mixture of experts, W2 a ResNet-18, W3 a transformer."""

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Losses = list[Tensor]


class Workload(nn.Module):
    """A trunk whose features all heads read, and one classification per task."""

    def __init__(self, trunk: nn.Module, heads: nn.ModuleList, inputs: Tensor, n_tasks: int):
        super().__init__()
        self.trunk, self.heads, self.inputs = trunk, heads, inputs
        self.targets = torch.randint(10, (n_tasks, len(inputs)))

    def features(self) -> Tensor:
        return self.trunk(self.inputs)

    def head_losses(self, features: Tensor) -> Losses:
        pairs = zip(self.heads, self.targets, strict=True)
        return [F.cross_entropy(head(features), target) for head, target in pairs]

    def losses(self) -> Losses:
        return self.head_losses(self.features())

    def shared(self) -> list[nn.Parameter]:
        return list(self.trunk.parameters())


class Experts(nn.Module):
    """Eight experts, [expert, batch, feature]."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
            for _ in range(8)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([expert(x) for expert in self.experts])


class GatedHead(nn.Module):
    """A gate over the experts, then a tower."""

    def __init__(self, inputs: Tensor) -> None:
        super().__init__()
        self.inputs = inputs
        self.gate = nn.Linear(512, 8)
        self.tower = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, experts: Tensor) -> Tensor:
        gates = self.gate(self.inputs).softmax(-1)
        return self.tower(torch.einsum("ebd,be->bd", experts, gates))


class Block(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = stride == 1 and before == after
        self.short = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.short(x))


class Attention(nn.Module):
    """Self-attention with four heads."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.read = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.read(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)  # [3, b, head, t, d]
        return self.out(F.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer of a transformer that normalises first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(size), Attention(size))
        self.think = nn.Sequential(
            nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(x)


class Positions(nn.Module):
    """Adds a vector to each position."""

    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(0.02 * torch.randn(length, size))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.vectors


class Pooled(nn.Module):
    """A linear head on the mean over positions."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.out = nn.Linear(size, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x.mean(1))


def mixture(n_tasks: int) -> Workload:
    """W1: eight experts of two layers, batch 1024."""
    inputs = torch.randn(1024, 512)
    heads = nn.ModuleList(GatedHead(inputs) for _ in range(n_tasks))
    return Workload(Experts(), heads, inputs, n_tasks)


def resnet(n_tasks: int) -> Workload:
    """W2: a ResNet-18 for small pictures, batch 16."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    trunk = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    heads = nn.ModuleList(nn.Linear(512, 10) for _ in range(n_tasks))
    return Workload(trunk, heads, torch.randn(16, 3, 32, 32), n_tasks)


def transformer(n_tasks: int) -> Workload:
    """W3: four layers of width 256 over 1,000 words, batch 16, 128 positions."""
    trunk = nn.Sequential(
        nn.Embedding(1000, 256),
        Positions(128, 256),
        *(Layer(256) for _ in range(4)),
        nn.LayerNorm(256),
    )
    heads = nn.ModuleList(Pooled(256) for _ in range(n_tasks))
    return Workload(trunk, heads, torch.randint(1000, (16, 128)), n_tasks)


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "W1": mixture,
    "W2": resnet,
    "W3": transformer,
}
