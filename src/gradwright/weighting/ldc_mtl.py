"""Loss discrepancy control."""

import torch
from torch import Tensor, nn

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.values import state_of


class LDCMTL(Scalarization):
    """Learned weights that bring the weighted losses of neighbouring tasks together.

    f(l) = Σ σ_k l_k / (Σ σ, held fixed) + λ Σ |σ_k l_k - σ_{k+1} l_{k+1}| with σ = sigmoid of
    the scores. In the second sum k + 1 is the next task of the step.

    The scores are a parameter of this module: **give `weighting.parameters()` to the optimizer**,
    else the weights are not learned. Losses of very different scales should be brought together
    before, for example divided by their first values.

    Xiao, Dong, Zou and Ji, LDC-MTL: Balancing Multi-Task Learning through Scalable Loss
    Discrepancy Control, 2025, https://arxiv.org/abs/2502.08585. The paper's upper and lower level
    problem in one backward, and a score per task, as in the official CelebA experiment; in others
    a layer makes the scores from the features.

    Called with losses [task], returns weights [task], which can be negative, and adds to
    `scores.grad`.

    Args:
        n_tasks: number of tasks.
        penalty: λ; the official experiments use 0.01 to 0.1.
        start: first value of the scores.

    Example:
        >>> LDCMTL(2, penalty=0.1)(torch.tensor([1.0, 3.0]))
        tensor([0.4269, 0.5731])
    """

    def __init__(self, n_tasks: int, penalty: float = 0.05, start: float = 1.0) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("penalty", penalty)
        super().__init__()
        self.penalty = penalty
        self.scores = nn.Parameter(torch.full((n_tasks,), float(start)))

    def total(self, losses: Tensor) -> Tensor:
        """Σ σ l / Σ σ + λ Σ |σ_k l_k - σ_{k+1} l_{k+1}|."""
        sigma = state_of(self, self.scores, losses).sigmoid()
        weighted = sigma * losses
        gaps = (weighted[:-1] - weighted[1:]).abs().sum()
        return weighted.sum() / sigma.sum().detach() + self.penalty * gaps
