"""Whole training steps of LibMTL 1.1.5, in its own code, on the CPU.

Its package imports the trainer, which needs torchvision: the modules of its weightings are imported
without the packages around them. `Module.zero_grad` keeps gradients, as it did in the torch it was
written for, because it writes into them afterwards.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn


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
    model = _model(tasks, method)
    for seed in seeds:
        tasks.zero_grad(set_to_none=False)
        losses = torch.zeros(len(tasks.heads))
        for task, loss in enumerate(tasks.losses(seed)):
            losses[task] = loss
        model.backward(losses, **options)


def _model(tasks: Tasks, method: str) -> Any:
    class Model(_weighting(method)):  # type: ignore[misc]
        """What LibMTL's architectures and its trainer give to a weighting."""

        def __init__(self) -> None:
            super().__init__()
            self.task_num, self.rep_grad, self.epoch = len(tasks.heads), False, 0
            self.device = torch.device("cpu")
            self.init_param()

        def get_share_params(self) -> list[nn.Parameter]:
            return list(tasks.trunk.parameters())

        def zero_grad_share_params(self) -> None:
            tasks.trunk.zero_grad(set_to_none=False)

    return Model()


def _weighting(method: str) -> Callable[..., Any]:
    for name in ("LibMTL", "LibMTL.weighting"):
        if name not in sys.modules:
            sys.modules[name] = _bare_package(name)
    module = importlib.import_module(f"LibMTL.weighting.{method}")
    weighting: Callable[..., Any] = getattr(module, method)
    return weighting


def _bare_package(name: str) -> ModuleType:
    folders = [Path(entry, name.replace(".", "/")) for entry in sys.path]
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder) for folder in folders if folder.is_dir()]
    if not spec.submodule_search_locations:
        pytest.skip(f"{name} is not installed: pip install --no-deps LibMTL==1.1.5")
    return importlib.util.module_from_spec(spec)
