"""The methods that read a Gramian as tests make them, and which properties each of them claims."""

from dataclasses import dataclass

from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.cagrad import CAGrad
from gradwright.weighting.config import ConFIG
from gradwright.weighting.crmogm import CRMOGM
from gradwright.weighting.dualproj import DualProj
from gradwright.weighting.every import Every
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.gradnorm import GradNorm
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.krum import Krum
from gradwright.weighting.log import Log
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pcd import PCD
from gradwright.weighting.pcgrad import PCGrad
from gradwright.weighting.upgrad import UPGrad
from tests.weighting.properties import Make


@dataclass(frozen=True)
class Claims:
    """How to make a method for n tasks, and what holds for its weights."""

    make: Make
    degree: float | None = 0  # of the weights in the common length of the gradients
    symmetric: bool = True  # the order of the tasks means nothing
    continuous: bool = True  # a little rounding does not choose between two answers
    unit_free: bool = False
    agrees: bool = False
    agrees_if_independent: bool = False
    simplex: bool = False
    stationary: bool = False
    stateful: bool = False
    fewest: int = 1  # tasks; among fewer than 5, scores of Krum are always equal for two of them


METHODS = {
    "MGDA": Claims(lambda n: MGDA(), agrees=True, simplex=True, stationary=True),
    "MGDA-l2": Claims(lambda n: MGDA("l2"), simplex=True),
    "MGDA-loss+": Claims(lambda n: MGDA("loss+"), simplex=True),
    "PCGrad": Claims(lambda n: PCGrad(), symmetric=False),
    "GradVac": Claims(GradVac, symmetric=False, stateful=True),
    "CAGrad": Claims(lambda n: CAGrad()),
    "CAGrad-2": Claims(lambda n: CAGrad(2.0, rescale=0), agrees=True, stationary=True),
    "NashMTL": Claims(lambda n: NashMTL(), -1, unit_free=True, agrees_if_independent=True),
    "NashMTL-every-2": Claims(lambda n: NashMTL(n, 1.0, 2), -1, stateful=True),
    "FairGrad": Claims(lambda n: FairGrad(2.0), -4 / 3, agrees_if_independent=True),
    "AlignedMTL": Claims(lambda n: AlignedMTL(), continuous=False),
    "AlignedMTL-median": Claims(lambda n: AlignedMTL(scale="median"), continuous=False),
    "AlignedMTL-rmse": Claims(lambda n: AlignedMTL(scale="rmse"), continuous=False),
    "IMTLG": Claims(lambda n: IMTLG(), continuous=False, unit_free=True),
    "UPGrad": Claims(lambda n: UPGrad(), agrees=True, stationary=True),
    "DualProj": Claims(lambda n: DualProj(), agrees=True, stationary=True),
    "ConFIG": Claims(
        lambda n: ConFIG(), continuous=False, unit_free=True, agrees_if_independent=True
    ),
    "Krum": Claims(lambda n: Krum(), continuous=False, simplex=True, fewest=5),
    "Krum-multi": Claims(lambda n: Krum(1, 2), continuous=False, simplex=True, fewest=5),
    "PCD": Claims(PCD, degree=None, symmetric=False, stateful=True),
    "GradNorm": Claims(GradNorm, stateful=True),
    "Log": Claims(lambda n: Log(UPGrad()), agrees=True, stationary=True),
    "CRMOGM": Claims(lambda n: CRMOGM(UPGrad(), n), agrees=True, stationary=True, stateful=True),
    "Every": Claims(lambda n: Every(UPGrad(), n, 2), agrees=True, stationary=True, stateful=True),
    "Every-GradNorm": Claims(lambda n: Every(GradNorm(n), n, 3), stateful=True),
    "CRMOGM-GradNorm": Claims(lambda n: CRMOGM(GradNorm(n), n), stateful=True),
}


def claiming(claim: str) -> list[str]:
    """The names of the methods that claim this."""
    return [name for name, method in METHODS.items() if getattr(method, claim)]
