"""Improvable gap balancing, its first version."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.epoch_mean import EpochMean
from gradwright.weighting.values import positive, state_of


class IGBv1(LossWeighting):
    """Tasks that are furthest above zero, measured by an early epoch, count most.

    w = K softmax(l / base) / l, the gradient of Σ a_k log l_k with a = K softmax(l / base) held
    fixed; `base` is the mean loss of epoch `base_epoch`. Until then a = 1.

    **Call `end_epoch()` after every epoch**, else a stays 1. Losses need to be positive. A task
    that had no loss in epoch `base_epoch` counts as l_k = base_k.

    Dai, Fei and Lu, Improvable Gap Balancing for Multi-Task Learning, UAI 2023,
    https://arxiv.org/abs/2307.15429. `base_epoch` is 1, counted from 0, as in the official code.
    The second version, which learns weights by reinforcement, is not here.

    Called with losses [task], returns weights [task] > 0.

    Args:
        n_tasks: number of tasks.
        base_epoch: the epoch whose mean losses are the measure.

    Example:
        >>> weighting = IGBv1(2, base_epoch=0)
        >>> _ = weighting(torch.tensor([1.0, 2.0]))
        >>> weighting.end_epoch()
        >>> weighting(torch.tensor([1.0, 1.0]))  # the second has half its gap left
        tensor([1.2449, 0.7551])
    """

    epochs: Tensor
    base: Tensor

    def __init__(self, n_tasks: int, base_epoch: int = 1) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("base_epoch", base_epoch)
        super().__init__()
        self.base_epoch = base_epoch
        self.epoch = EpochMean(n_tasks)
        self.register_buffer("epochs", torch.zeros((), dtype=torch.int64))
        self.register_buffer("base", torch.full((n_tasks,), torch.nan))  # nan: not known

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]; counts `losses` for the mean of this epoch."""
        values = positive(self, losses)
        base = state_of(self, self.base, losses)
        self.epoch.add(losses, self._present)
        gaps = torch.where(base.isnan(), 1.0, values / base)
        weights = len(losses) * torch.softmax(gaps, dim=0) / values
        return weights.to(losses.dtype)

    def end_epoch(self) -> None:
        """Move on: at the end of epoch `base_epoch` its mean losses become the measure."""
        if self.epochs == self.base_epoch:
            self.base.copy_(self.epoch.mean_or(self.base))
        self.epochs += 1
        self.epoch.restart()
