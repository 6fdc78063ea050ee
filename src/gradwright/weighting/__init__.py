"""Loss-weighting methods, one per file.

The base that a method extends says what it reads, and so what a step costs: see
`gradwright.engine.weights.bases`.
"""

from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    JacobianWeighting,
    LossWeighting,
    Scalarization,
    Weighting,
)
from gradwright.weighting.aligned_mtl import AlignedMTL
from gradwright.weighting.bayes import BayesAgg, BinaryHead, ClassHead, RegressionHead
from gradwright.weighting.bilevel import FORUM, MOML, AutoLambda
from gradwright.weighting.cagrad import CAGrad
from gradwright.weighting.config import ConFIG
from gradwright.weighting.constant import Constant, LinearScalarization
from gradwright.weighting.cosmos import COSMOS
from gradwright.weighting.crmogm import CRMOGM
from gradwright.weighting.db_mtl import DBMTL
from gradwright.weighting.dualproj import DualProj
from gradwright.weighting.dwa import DWA
from gradwright.weighting.every import Every
from gradwright.weighting.excess_mtl import ExcessMTL
from gradwright.weighting.fairgrad import FairGrad
from gradwright.weighting.famo import FAMO
from gradwright.weighting.geometric_mean import GLS, GeometricMean
from gradwright.weighting.go4align import GO4Align
from gradwright.weighting.grad_drop import GradDrop
from gradwright.weighting.gradnorm import GradNorm
from gradwright.weighting.gradvac import GradVac
from gradwright.weighting.igbv1 import IGBv1
from gradwright.weighting.imtlg import IMTLG
from gradwright.weighting.imtll import IMTLL
from gradwright.weighting.krum import Krum
from gradwright.weighting.ldc_mtl import LDCMTL
from gradwright.weighting.log import Log
from gradwright.weighting.mean import Mean
from gradwright.weighting.meta_balance import MetaBalance
from gradwright.weighting.mgda import MGDA
from gradwright.weighting.moco import MoCo
from gradwright.weighting.modo import MoDo
from gradwright.weighting.nadir_stch import NadirSTCH
from gradwright.weighting.nash_mtl import NashMTL
from gradwright.weighting.pbi import PBI
from gradwright.weighting.pcd import PCD
from gradwright.weighting.pcgrad import PCGrad
from gradwright.weighting.per_group import PerGroup
from gradwright.weighting.random import RLW, Random
from gradwright.weighting.sdmgrad import SDMGrad
from gradwright.weighting.stch import STCH
from gradwright.weighting.sum import EW, Sum
from gradwright.weighting.trimmed_mean import TrimmedMean
from gradwright.weighting.upgrad import UPGrad
from gradwright.weighting.uw import UW

__all__ = [
    # what a method may read
    "Weighting",
    "LossWeighting",
    "Scalarization",
    "GramianWeighting",
    "GramianLossWeighting",
    "GroupWeighting",
    "CrossGramianWeighting",
    "JacobianWeighting",
    # the losses
    "Sum",
    "EW",
    "Mean",
    "Constant",
    "LinearScalarization",
    "Random",
    "RLW",
    "GeometricMean",
    "GLS",
    "UW",
    "IMTLL",
    "DWA",
    "STCH",
    "NadirSTCH",
    "FAMO",
    "IGBv1",
    "GO4Align",
    "LDCMTL",
    "COSMOS",
    "PBI",
    # the Gramian
    "MGDA",
    "PCGrad",
    "GradVac",
    "CAGrad",
    "NashMTL",
    "FairGrad",
    "AlignedMTL",
    "IMTLG",
    "UPGrad",
    "DualProj",
    "ConFIG",
    "Krum",
    "PCD",
    "GradNorm",
    # the rows of the Jacobian
    "GradDrop",
    "TrimmedMean",
    "MoCo",
    "DBMTL",
    "ExcessMTL",
    "MetaBalance",
    # two independent batches
    "MoDo",
    "SDMGrad",
    # around another method
    "Log",
    "CRMOGM",
    "Every",
    "PerGroup",
    # a whole training step, or the features
    "AutoLambda",
    "MOML",
    "FORUM",
    "BayesAgg",
    "RegressionHead",
    "BinaryHead",
    "ClassHead",
]
