"""Three numbers per layer for each recorded step: small enough to keep for a long training."""

from collections import deque
from collections.abc import Iterable
from math import nan

import torch
from torch import Tensor

from gradwright.monitor.snapshot import Spread

MOST_POINTS = 10_000  # of 50 layers they take 12 MB


class Curve:
    """The spread of every layer over the last 10,000 recorded steps."""

    def __init__(self) -> None:
        self.steps: deque[int] = deque(maxlen=MOST_POINTS)
        self._points: deque[Tensor] = deque(maxlen=MOST_POINTS)  # [layer, 3]

    def add(self, step: int, spreads: Iterable[Spread]) -> None:
        """One more step. Layers keep their order; new ones may follow."""
        self.steps.append(step)
        self._points.append(torch.tensor([*spreads], dtype=torch.float64).reshape(-1, 3))

    @property
    def values(self) -> Tensor:
        """[step, layer, 3], as in `Spread`; NaN before a layer was first met."""
        widest = max((len(point) for point in self._points), default=0)
        values = torch.full((len(self._points), widest, 3), nan, dtype=torch.float64)
        for place, point in enumerate(self._points):
            values[place, : len(point)] = point
        return values

    def load(self, steps: Iterable[int], values: Tensor) -> None:
        """Take the steps and values of another curve."""
        self.steps = deque(steps, maxlen=MOST_POINTS)
        self._points = deque(values.clone().unbind(), maxlen=MOST_POINTS)
