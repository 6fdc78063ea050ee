"""What `backward` returns."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class ApproximationError:
    """How far one step was from the exact one: Ĝ, ŵ and Jᵀŵ from G, w and Jᵀw."""

    gramian: float | None
    """‖c Ĝ - G‖ / ‖G‖ with the best factor c: few methods care about a common factor.

    None where no Gramian was made, but the weights of an earlier step were used.
    """

    update: float
    """|Jᵀŵ - Jᵀw| / |Jᵀw|."""

    cosine: float
    """Between the updates Jᵀŵ and Jᵀw."""

    def __str__(self) -> str:
        gramian = "" if self.gramian is None else f"the Gramian by {self.gramian:.2g}, "
        return f"off are {gramian}the update by {self.update:.2g} (cosine {self.cosine:.4f})"


@dataclass(frozen=True, slots=True)
class Route:
    """Which way the gradients were computed, and why that one."""

    name: str  # "sum", "losses", "rows", "lean", ...
    why: str
    exact: bool = True  # whether the weights are those of this step's exact Gramian
    error: ApproximationError | None = None  # of an approximate route that was to measure it

    def __str__(self) -> str:
        kind = "" if self.exact else " (approximate)"
        error = "" if self.error is None else f"; {self.error}"
        return f"{self.name}{kind}: {self.why}{error}"


@dataclass(frozen=True, slots=True)
class Backward:
    """The facts of one backward. Entries of tasks absent from the batch are NaN, weights 0."""

    tasks: tuple[str, ...]
    losses: Tensor  # [task]
    weights: Tensor | None  # [task]; None for the plain sum, and where the method gives none
    gramian: Tensor | None  # [task, task], float64; None where no method read it
    # with groups of parameters: weights [group, task], gramian [group, task, task]
    route: Route

    @property
    def cosines(self) -> Tensor | None:
        """Cosines between the tasks' gradients [task, task]; NaN where a gradient is zero."""
        if self.gramian is None:
            return None
        norms = self.gramian.diagonal(dim1=-2, dim2=-1).sqrt()
        return (self.gramian / (norms[..., :, None] * norms[..., None, :])).clamp(-1, 1)
