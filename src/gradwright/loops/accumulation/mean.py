"""What `Window.close` returns."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from gradwright.engine import Backward


@dataclass(frozen=True, slots=True)
class WindowMean:
    """The facts of one window."""

    loss: Tensor  # the mean over all terms: a scalar, of several losses [task] with NaN for absent
    count: float | Mapping[str, float]  # terms; of several losses by name
    micro_batches: int
    step: Backward | None = None  # of several losses: weights, Gramian, route

    @property
    def weights(self) -> Tensor | None:
        """What the weighting said, [task]; None where there was one loss, or none was asked."""
        return None if self.step is None else self.step.weights
