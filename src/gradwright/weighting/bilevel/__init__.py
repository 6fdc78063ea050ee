"""Methods that learn the weights from validation losses, and so own a whole training step."""

from gradwright.weighting.bilevel.auto_lambda import AutoLambda
from gradwright.weighting.bilevel.base import BilevelWeighting, Losses
from gradwright.weighting.bilevel.forum import FORUM
from gradwright.weighting.bilevel.moml import MOML

__all__ = ["BilevelWeighting", "Losses", "AutoLambda", "MOML", "FORUM"]
