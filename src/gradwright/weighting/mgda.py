"""The multiple-gradient descent algorithm."""

from typing import Literal

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianLossWeighting
from gradwright.weighting.checks import read_gramian, read_losses, tasks_where
from gradwright.weighting.solver import min_norm

Normalisation = Literal["none", "l2", "loss", "loss+"]


class MGDA(GramianLossWeighting):
    """The shortest weighted mean of the gradients, which no task disagrees with.

    w = argmin wᵀ G w over w ≥ 0, Σ w = 1. Then (G w)_k ≥ wᵀ G w for all k. With a normalisation,
    the gradients are divided by their length (l2), their loss, or both (loss+) to find w.

    Désidéri, Multiple-gradient descent algorithm (MGDA) for multiobjective optimization, Comptes
    Rendus Mathematique 2012. Sener and Koltun, Multi-Task Learning as Multi-Objective
    Optimization, NeurIPS 2018, equation 3, https://arxiv.org/abs/1810.04650. Their code and
    nash-mtl give w to the losses as they are, and so do we; LibMTL gives it to the normalised
    gradients. All three and TorchJD stop early or clip (LibMTL to 0.001); ours is exact.

    Called with a Gramian [task, task] and losses [task], returns weights [task]; the losses may be
    left out where the normalisation does not read them. A task whose gradient is 0 gets all the
    weight: by MGDA's measure nothing is left to gain.

    Args:
        normalisation: what to divide each gradient by to find the weights.

    Example:
        >>> MGDA()(torch.tensor([[1.0, 0.0], [0.0, 3.0]]))
        tensor([0.7500, 0.2500])
    """

    paper_heads = "weighted"

    def __init__(self, normalisation: Normalisation = "none") -> None:
        if normalisation not in ("none", "l2", "loss", "loss+"):
            raise ValueError(
                "`normalisation` needs to be 'none', 'l2', 'loss' or 'loss+': "
                f"got {normalisation!r}."
            )
        super().__init__()
        self.normalisation = normalisation

    def forward(self, gramian: Tensor, losses: Tensor | None = None) -> Tensor:
        """Weights [task] on the simplex."""
        G = read_gramian(gramian)
        divisor = torch.ones(len(G), dtype=G.dtype)
        if self.normalisation in ("l2", "loss+"):
            divisor *= G.diagonal().clamp(min=0).sqrt()
        if self.normalisation in ("loss", "loss+"):
            divisor *= _positive(losses, len(G), self.normalisation)
        divisor = divisor.masked_fill(divisor == 0, 1)  # of a gradient that is 0
        return min_norm(G / divisor.outer(divisor)).to(gramian)


def _positive(losses: Tensor | None, n_tasks: int, normalisation: Normalisation) -> Tensor:
    """The losses [task], to divide by."""
    if losses is None:
        raise ValueError(f"`normalisation={normalisation!r}` needs the losses: MGDA()(G, losses).")
    values = read_losses(losses, n_tasks)
    if not (values > 0).all():
        raise ValueError(
            f"`normalisation={normalisation!r}` divides by the losses, so they need to be above 0: "
            f"that of {tasks_where(values <= 0)} is not. Use 'none' or 'l2'."
        )
    return values
