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
    """W3: four layers of width 256, batch 16, 128 positions."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
    trunk = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    heads = nn.ModuleList(Pooled(256) for _ in range(n_tasks))
    return Workload(trunk, heads, torch.randn(16, 128, 256), n_tasks)


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "W1": mixture,
    "W2": resnet,
    "W3": transformer,
}
