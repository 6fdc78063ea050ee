"""The loss methods as tests make them: each for a number of tasks, and what it claims."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.constant import Constant
from gradwright.weighting.cosmos import COSMOS
from gradwright.weighting.dwa import DWA
from gradwright.weighting.famo import FAMO
from gradwright.weighting.geometric_mean import GeometricMean
from gradwright.weighting.go4align import GO4Align
from gradwright.weighting.igbv1 import IGBv1
from gradwright.weighting.imtll import IMTLL
from gradwright.weighting.ldc_mtl import LDCMTL
from gradwright.weighting.mean import Mean
from gradwright.weighting.nadir_stch import NadirSTCH
from gradwright.weighting.pbi import PBI
from gradwright.weighting.random import Random
from gradwright.weighting.stch import STCH
from gradwright.weighting.sum import Sum
from gradwright.weighting.uw import UW


@dataclass(frozen=True)
class Method:
    """How to make a method for n tasks, and which properties its weights have."""

    make: Callable[[int], LossWeighting]
    total: Callable[[int], float] | None = None  # what the weights sum to
    signed: bool = False  # weights below 0 are right
    per_task: bool = True  # knows the number of tasks
    logs: bool = False  # losses must be positive
    ordered: bool = False  # the order of the tasks means something


def _one(_: int) -> float:
    return 1.0


METHODS = {
    "Sum": Method(lambda n: Sum(), float, per_task=False),
    "Mean": Method(lambda n: Mean(), _one, per_task=False),
    "Constant": Method(lambda n: Constant([0.5] * n)),
    "Random": Method(lambda n: Random(), _one, per_task=False, ordered=True),
    "UW": Method(UW),
    "IMTLL": Method(IMTLL, float),
    "GeometricMean": Method(lambda n: GeometricMean(), per_task=False, logs=True),
    "DWA": Method(DWA, float),
    "STCH": Method(lambda n: STCH(mu=0.5, preference=[0.5] * n), lambda n: 0.5),
    "NadirSTCH": Method(lambda n: NadirSTCH(n, warm_up=0), logs=True),
    "FAMO": Method(FAMO, _one, logs=True),
    "IGBv1": Method(lambda n: IGBv1(n, base_epoch=0), logs=True),
    "GO4Align": Method(GO4Align, logs=True),
    "LDCMTL": Method(LDCMTL, signed=True, ordered=True),
    "COSMOS": Method(lambda n: COSMOS([0.5] * n, penalty=0.5), signed=True),
    "PBI": Method(lambda n: PBI([1 / n] * n), signed=True),
}


def train(weighting: LossWeighting, steps: list[list[float]]) -> torch.Tensor:
    """Run the steps with whatever the method asks for between them; the last step's weights."""
    for losses in steps:
        weights = weighting(torch.tensor(losses, dtype=torch.float64))
        if isinstance(weighting, FAMO):
            weighting.update(torch.tensor(losses, dtype=torch.float64) * 0.9 ** len(losses))
        if isinstance(weighting, (DWA, NadirSTCH, IGBv1)):
            weighting.end_epoch()
    return weights
