"""Pieces of models that are wrong in one place."""

from collections.abc import Callable
from typing import Any

from torch import nn

from gradwright.architecture import AttentionStage, ExtractionLevel
from tests.architecture.models import WIDTH, gate, layer

Case = tuple[Callable[[], object], type[Exception], str]
"""What makes the model, the error and its message."""


def level(**changes: Any) -> ExtractionLevel:
    return ExtractionLevel(**{"expert": layer, "gate": gate, "n_shared": 1, "n_task": 1, **changes})


def stage(**changes: Any) -> AttentionStage:
    parts = {"first": layer(), "second": nn.Tanh(), "attention": mask, "onward": nn.Identity()}
    return AttentionStage(**{**parts, **changes})


def mask(n_in: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(n_in, WIDTH), nn.Sigmoid())


def wrong(value: Any) -> Any:
    """What a type checker would refuse."""
    return value
