"""Multi-task architectures on modules of any kind, one architecture per file.

Each is called with one input for all tasks and returns {task: output}; `each` takes one input per
task. See `gradwright.architecture.base` for what all of them offer.
"""

from gradwright.architecture.aitm import AITM
from gradwright.architecture.base import Architecture
from gradwright.architecture.cgc import CGC
from gradwright.architecture.cross_stitch import CrossStitch
from gradwright.architecture.dselect_k import DSelectK
from gradwright.architecture.esmm import ESMM
from gradwright.architecture.extraction import ExtractionLevel
from gradwright.architecture.ltb import LTB
from gradwright.architecture.mmoe import MMoE
from gradwright.architecture.mtan import MTAN, AttentionStage
from gradwright.architecture.ple import PLE
from gradwright.architecture.shared_bottom import HPS, SharedBottom

__all__ = [
    "Architecture",
    # one network for all tasks
    "SharedBottom",
    "HPS",
    "MTAN",
    "AttentionStage",
    # mixtures of experts
    "MMoE",
    "DSelectK",
    "CGC",
    "PLE",
    "ExtractionLevel",
    # one network per task
    "CrossStitch",
    "LTB",
    # steps that follow one another
    "ESMM",
    "AITM",
]
