"""LibMTL 1.1.5 and TorchJD 0.18, each as its own code runs a step of a workload.

What stands between them and the workload, and is not theirs:

- LibMTL's trainer needs torchvision and cuda:0, and its package imports the trainer. The modules of
  its weightings are imported without the packages around them, on the CPU. Losses are written into
  one tensor, as its trainer does it.
- LibMTL sets gradients to zero by `Module.zero_grad()` and writes into them afterwards, for which
  torch 2 must be told to keep them.
- TorchJD gets `optimize_gramian_computation`, which is faster and smaller here than its default.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks._workloads import Workload

Step = Callable[[], object]


def libmtl(work: Workload, method: str) -> Step:
    """A step with LibMTL's own weighting."""
    model = libmtl_model(method, len(work.heads), work.trunk)

    def step() -> None:
        losses = torch.zeros(len(work.heads))
        for task, loss in enumerate(work.losses()):
            losses[task] = loss
        model.backward(losses, mgda_gn="none")

    return step


def libmtl_model(method: str, n_tasks: int, trunk: nn.Module) -> Any:
    """LibMTL's weighting, with what its architectures and its trainer give it.

    Raises:
        ImportError: LibMTL is not installed.
    """

    class Model(_libmtl_weighting(method)):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.task_num, self.rep_grad, self.epoch = n_tasks, False, 0
            self.device = torch.device("cpu")
            self.init_param()

        def get_share_params(self) -> list[nn.Parameter]:
            return list(trunk.parameters())

        def zero_grad_share_params(self) -> None:
            trunk.zero_grad(set_to_none=False)

    return Model()


def torchjd_sum(work: Workload, method: str) -> Step:
    """A step with one of TorchJD's scalarizations."""
    from torchjd import scalarization

    scalarizer = getattr(scalarization, method)(len(work.heads))

    def step() -> None:
        losses = torch.stack(work.losses())
        scalarizer(losses).backward()

    return step


def torchjd_rows(work: Workload, method: str, chunk: int | None) -> Step:
    """A step with TorchJD's `mtl_backward`: `chunk` tasks at once, None for all."""
    from torchjd import aggregation
    from torchjd.autojac import jac_to_grad, mtl_backward

    aggregator = getattr(aggregation, method)()

    def step() -> None:
        features = work.features()
        losses = work.head_losses(features)
        mtl_backward(losses, features=features, parallel_chunk_size=chunk)
        jac_to_grad(work.shared(), aggregator, optimize_gramian_computation=True)

    return step


def torchjd_autogram(work: Workload, method: str) -> Step:
    """A step with TorchJD's Gramian engine, then one backward of the weighted losses."""
    from torchjd import aggregation
    from torchjd.autogram import Engine

    engine = Engine(work.trunk, batch_dim=None)
    weighting: Callable[[Tensor], Tensor] = getattr(aggregation, f"{method}Weighting")()

    def step() -> None:
        losses = torch.stack(work.losses())
        losses.backward(weighting(engine.compute_gramian(losses)))

    return step


def _libmtl_weighting(method: str) -> Any:
    for name in ("LibMTL", "LibMTL.weighting"):
        if name not in sys.modules:
            sys.modules[name] = bare_package(name)
    return getattr(importlib.import_module(f"LibMTL.weighting.{method}"), method)


def bare_package(name: str) -> ModuleType:
    """A package whose modules can be imported while its own `__init__` does not run."""
    folders = [Path(entry, name.replace(".", "/")) for entry in sys.path]
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(folder) for folder in folders if folder.is_dir()]
    if not spec.submodule_search_locations:
        raise ImportError(f"{name} is not installed: pip install --no-deps LibMTL==1.1.5")
    return importlib.util.module_from_spec(spec)
