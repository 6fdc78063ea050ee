"""The architectures of LibMTL 1.1.5, in its own code.

Its packages need torchvision, so its modules are imported without the packages around them.
"""

import importlib
import sys
from typing import Any

import pytest
from torch import nn

from benchmarks._peers import bare_package


def module(name: str) -> Any:
    """The module LibMTL.architecture.`name`."""
    try:
        for package in ("LibMTL", "LibMTL.architecture"):
            if package not in sys.modules:
                sys.modules[package] = bare_package(package)
        return importlib.import_module(f"LibMTL.architecture.{name}")
    except ImportError as error:
        pytest.skip(str(error))


def made(name: str, heads: nn.ModuleDict, encoder: Any, **options: Any) -> Any:
    """One of its models; where it needs tasks, they are those of `heads`."""
    architecture = module("abstract_arch" if name == "AbsArchitecture" else name)
    kind: Any = getattr(architecture, name)
    return kind(list(heads), encoder, heads, False, False, "cpu", **options)


class Encoder(nn.Module):
    """What its code asks of a ResNet: conv1, bn1, relu, maxpool, layer1 to layer4."""

    def __init__(self, channels: tuple[int, ...], feature_dim: int = 0) -> None:
        super().__init__()
        self.feature_dim = feature_dim
        first = channels[0]
        self.conv1, self.bn1 = nn.Conv2d(3, first, 1), nn.BatchNorm2d(first)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(2)
        self.layer1 = _layer(first, first, 1)
        self.layer2 = _layer(first, channels[1], 2)
        self.layer3 = _layer(channels[1], channels[2], 2)
        self.layer4 = _layer(channels[2], channels[3], 1)


def _layer(n_in: int, n_out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride), nn.Tanh()),
        nn.Sequential(nn.Conv2d(n_out, n_out, 1), nn.Tanh()),
    )
