"""Approximate routes: a Gramian that costs less, for weights that are a little off.

They are taken where a `route=` of theirs is given, and never otherwise. The combined gradient is
the exact one of those weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.plan.stages import Plan


class Approximation(ABC):
    """How to come to a Gramian without the whole backward of each task."""

    name: str
    measure_error: bool

    @abstractmethod
    def edges(self, plan: Plan, meeting: Sequence[GradientEdge]) -> list[GradientEdge]:
        """Where the gradients are read; `meeting` are the shared leaves."""

    @abstractmethod
    def gramian(self, plan: Plan, edges: Sequence[GradientEdge], names: Sequence[str]) -> Tensor:
        """About G [task, task], in float64, on the CPU; the graph is kept.

        `edges` are its own, `names` those of the tasks of this batch.
        """

    @property
    @abstractmethod
    def what(self) -> str:
        """What is read in place of the Gramian, as part of a sentence."""
