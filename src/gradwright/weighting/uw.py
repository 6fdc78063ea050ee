"""Uncertainty weighting."""

import torch
from torch import Tensor, nn

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_n_tasks
from gradwright.weighting.values import state_of


class UW(Scalarization):
    """Each task has a learned log-variance s; noisy tasks count less.

    f(l) = Σ l_k / (2 exp s_k) + s_k / 2, so w_k = 1 / (2 exp s_k).

    The log-variances are a parameter of this module: **give `weighting.parameters()` to the
    optimizer**, else the weights stay where they start.

    Kendall, Gal and Cipolla, Multi-Task Learning Using Uncertainty to Weigh Losses for Scene
    Geometry and Semantics, CVPR 2018, section 3.2, https://arxiv.org/abs/1705.07115. As LibMTL and
    TorchJD do, we use the regression form for every task; the paper has 1 / exp s for
    classification.

    Called with losses [task], returns weights [task], and adds to `log_variances.grad`.

    Args:
        n_tasks: number of tasks.
        start: first value of the log-variances: 0 as in TorchJD (w = 1/2), -0.5 in LibMTL.

    Example:
        >>> UW(2)(torch.tensor([0.5, 2.0]))
        tensor([0.5000, 0.5000])
    """

    def __init__(self, n_tasks: int, start: float = 0.0) -> None:
        check_n_tasks(n_tasks)
        super().__init__()
        self.log_variances = nn.Parameter(torch.full((n_tasks,), float(start)))

    def total(self, losses: Tensor) -> Tensor:
        """Σ l / (2 exp s) + s / 2."""
        s = state_of(self, self.log_variances, losses)
        return (losses / (2 * s.exp()) + s / 2).sum()
