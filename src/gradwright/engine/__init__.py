"""Backward passes of many losses, and what a loss weighting is."""

from gradwright.engine.approximate.partial_gramian import Features, LastBlock
from gradwright.engine.approximate.sketch import Sketch
from gradwright.engine.errors import LossError, SharedError, TaskMismatch
from gradwright.engine.jacobians import gramian, jacobian
from gradwright.engine.losses import Losses
from gradwright.engine.many_losses import backward
from gradwright.engine.result import ApproximationError, Backward, Route
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    HeadRule,
    JacobianWeighting,
    LossWeighting,
    Scalarization,
    Weighting,
)

__all__ = [
    "Approximation",
    "ApproximationError",
    "Backward",
    "CrossGramianWeighting",
    "Features",
    "GramianLossWeighting",
    "GramianWeighting",
    "GroupWeighting",
    "HeadRule",
    "JacobianWeighting",
    "LastBlock",
    "LossError",
    "LossWeighting",
    "Losses",
    "Route",
    "Scalarization",
    "SharedError",
    "Sketch",
    "TaskMismatch",
    "Weighting",
    "backward",
    "gramian",
    "jacobian",
]
