"""What `backward` returns."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Route:
    """Which way the gradients were computed, and why that one."""

    name: str  # "sum", "losses", "rows", "lean", ...
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class Backward:
    """The facts of one backward. Entries of tasks absent from the batch are NaN, weights 0."""

    tasks: tuple[str, ...]
    losses: Tensor  # [task]
    weights: Tensor | None  # [task]; None for the plain sum, and where the method gives none
    gramian: Tensor | None  # [task, task], float64; None where no method read it
    route: Route

    @property
    def cosines(self) -> Tensor | None:
        """Cosines between the tasks' gradients [task, task]; NaN where a gradient is zero."""
        if self.gramian is None:
            return None
        norms = self.gramian.diagonal().sqrt()
        return (self.gramian / torch.outer(norms, norms)).clamp(-1, 1)
