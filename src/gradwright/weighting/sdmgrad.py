"""Direction-oriented multi-objective gradients."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from gradwright.engine.weights.bases import CrossGramianWeighting, HeadBatches, HeadRule
from gradwright.weighting.arguments import (
    check_fraction,
    check_n_tasks,
    check_not_negative,
    check_positive,
    preference_vector,
)
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.share import put_share, share_of
from gradwright.weighting.solver import project_on_simplex
from gradwright.weighting.values import state_of


class SDMGrad(CrossGramianWeighting):
    """MGDA's direction, pulled towards a preferred one, without bias from the batches.

    A = J₁ J₂ᵀ / s² with s = mean √A_kk; `iterations` projected steps of SGD with momentum on
    w ↦ A (w + λ p), from the last step's w; the weights are (w + λ p) / (1 + λ). J₁ and J₂ come
    from two independent batches, and the weights are for a third.

    Xiao, Ban and Ji, Direction-oriented Multi-objective Learning: Simple and Provable Stochastic
    Algorithms, NeurIPS 2023, https://arxiv.org/abs/2305.18409. As in the official code and
    TorchJD; LibMTL's learning rate is 5. They add 1e-4 or 1e-8 in the scaling, we do not, so tiny
    gradients give the same weights. The diagonal of A can be negative and counts as 0 in s; if it
    is nowhere positive, s² is the largest |A_jk|.

    `gradwright.backward(losses, weighting=…, other=[losses_2, losses_3])` makes J₁ and J₂ of the
    two in `other`. The paper treats all parameters alike; its code, LibMTL and we leave the heads
    unweighted. Ours are those of `losses`, the other two add up those of all three batches.
    TorchJD weights whole losses.

    Called with J₁ J₂ᵀ [task, task], returns weights [task] ≥ 0 with sum 1; w is kept as `weights`.

    Args:
        n_tasks: number of tasks.
        pull: λ, how strongly the preferred direction pulls; 0.3 as in the official experiments.
        lr: learning rate of SGD.
        momentum: momentum of SGD.
        iterations: number of steps of SGD.
        preference: p, one number per task, used with sum 1; by default equal.

    Example:
        >>> SDMGrad(2)(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.8583, 0.1417])
    """

    torchjd_heads: ClassVar[HeadRule] = "weighted"
    libmtl_head_batches: ClassVar[HeadBatches] = "sum"

    weights: Tensor
    preference: Tensor

    def __init__(
        self,
        n_tasks: int,
        pull: float = 0.3,
        lr: float = 10.0,
        momentum: float = 0.5,
        iterations: int = 20,
        preference: Sequence[float] | Tensor | None = None,
    ) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("pull", pull)
        check_fraction("momentum", momentum)
        check_positive("lr", lr)
        check_positive("iterations", iterations)
        super().__init__()
        self.pull = pull
        self.lr = lr
        self.momentum = momentum
        self.iterations = iterations
        equal = torch.full((n_tasks,), 1 / n_tasks)
        self.register_buffer("weights", equal)
        given = equal if preference is None else preference
        self.register_buffer("preference", preference_vector("preference", given))

    def forward(self, cross_gramian: Tensor) -> Tensor:
        """Weights [task] for the third batch."""
        A = _to_unit_scale(read_gramian(cross_gramian))
        p = state_of(self, self.preference, A)
        pulled = self.pull * p / p.sum()
        w = share_of(self, self.weights, A)
        velocity = torch.zeros_like(w)
        for _ in range(self.iterations):
            velocity = self.momentum * velocity + A @ (w + pulled)
            w = project_on_simplex(w - self.lr * velocity)
        put_share(self, self.weights, w)
        return ((w + pulled) / (1 + self.pull)).to(cross_gramian)


def _to_unit_scale(A: Tensor) -> Tensor:
    squared = A.diagonal().clamp(min=0).sqrt().mean().square()
    if squared == 0:
        squared = A.abs().max()
    return A / squared if squared > 0 else A
