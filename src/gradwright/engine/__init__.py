"""Backward passes of many losses, and what a loss weighting is."""

from gradwright.engine.errors import LossError, SharedError, TaskMismatch
from gradwright.engine.jacobians import gramian, jacobian
from gradwright.engine.losses import Losses
from gradwright.engine.many_losses import backward
from gradwright.engine.result import Backward, Route
from gradwright.engine.weighting import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    HeadRule,
    JacobianWeighting,
    LossWeighting,
    Scalarization,
    Weighting,
)

__all__ = [
    "Backward",
    "CrossGramianWeighting",
    "GramianLossWeighting",
    "GramianWeighting",
    "HeadRule",
    "JacobianWeighting",
    "LossError",
    "LossWeighting",
    "Losses",
    "Route",
    "Scalarization",
    "SharedError",
    "TaskMismatch",
    "Weighting",
    "backward",
    "gramian",
    "jacobian",
]
