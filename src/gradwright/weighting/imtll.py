"""The loss half of impartial multi-task learning."""

import torch
from torch import Tensor, nn

from gradwright.engine.weights.bases import Scalarization
from gradwright.weighting.arguments import check_n_tasks
from gradwright.weighting.values import state_of


class IMTLL(Scalarization):
    """Each task has a learned log-scale s, which brings all scaled losses towards 1.

    f(l) = Σ exp(s_k) l_k - s_k, so w_k = exp s_k; where s is at its best, w_k = 1 / l_k.

    The scales are a parameter of this module: **give `weighting.parameters()` to the optimizer**,
    else the weights stay 1. The losses should be positive: s grows for ever for one that is not.

    Liu, Li, Kuang, Xue, Chen, Yang, Liao and Zhang, Towards Impartial Multi-task Learning, ICLR
    2021, https://openreview.net/forum?id=IMPnRXEWpvr. LibMTL's IMTL is this followed
    by IMTL-G.

    Called with losses [task], returns weights [task], and adds to `log_scales.grad`.

    Args:
        n_tasks: number of tasks.

    Example:
        >>> IMTLL(2)(torch.tensor([0.5, 2.0]))
        tensor([1., 1.])
    """

    def __init__(self, n_tasks: int) -> None:
        check_n_tasks(n_tasks)
        super().__init__()
        self.log_scales = nn.Parameter(torch.zeros(n_tasks))

    def total(self, losses: Tensor) -> Tensor:
        """Σ exp(s) l - s."""
        s = state_of(self, self.log_scales, losses)
        return (s.exp() * losses - s).sum()
