"""Whole training steps of LibMTL 1.1.5, in its own code: see benchmarks/_peers.py."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from benchmarks._peers import libmtl_model


class Tasks(nn.Module):
    """A trunk and one head per task, with losses of different lengths that pull apart."""

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.trunk = nn.Linear(6, 4)
        self.heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(n_tasks))

    def losses(self, seed: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(16, 6, generator=generator)
        features = self.trunk(x).tanh()
        targets = torch.randn(16, len(self.heads), generator=generator)
        return [
            (scale + 1) * (head(features)[:, 0] - targets[:, scale]).square().mean()
            for scale, head in enumerate(self.heads)
        ]


def step(tasks: Tasks, method: str, options: dict[str, Any], seeds: list[int]) -> None:
    """Steps of LibMTL's `method`, one per seed; the last one's gradients stay."""
    try:
        model = libmtl_model(method, len(tasks.heads), tasks.trunk)
    except ImportError as error:
        pytest.skip(str(error))
    for seed in seeds:
        tasks.zero_grad(set_to_none=False)
        losses = torch.zeros(len(tasks.heads))
        for task, loss in enumerate(tasks.losses(seed)):
            losses[task] = loss
        model.backward(losses, **options)
