"""Smooth Tchebycheff scalarization on log losses, as its multi-task experiments run it."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.arguments import check_n_tasks, check_not_negative, check_positive
from gradwright.weighting.epoch_mean import EpochMean
from gradwright.weighting.values import positive, state_of


class NadirSTCH(LossWeighting):
    """A smooth maximum of the log losses, each relative to its mean after a warm-up.

    f(l) = Σ log l_k in the epochs 0 … warm_up; then f(l) = K μ log Σ exp(log(l_k / z_k) / μ),
    where z (the "nadir") is the mean loss of epoch `warm_up`. So w_k = 1 / l_k, then
    w = K softmax(log(l / z) / μ) / l.

    **Call `end_epoch()` after every epoch**, else the warm-up never ends. Losses need to be
    positive. A task that had no loss in epoch `warm_up` counts as l_k = z_k.

    Lin, Zhang, Yang, Liu, Wang and Zhang, Smooth Tchebycheff Scalarization for Multi-Objective
    Optimization, ICML 2024, https://arxiv.org/abs/2402.19078. We follow the official code's folder
    STCH_MTL, which LibMTL took over under the name STCH; `STCH` is the paper's formula.

    Called with losses [task], returns weights [task] > 0.

    Args:
        n_tasks: number of tasks.
        mu: μ, the smoothing; smaller is closer to the maximum.
        warm_up: the epoch, counted from 0, whose mean losses are kept; 4 as in the official code.

    Example:
        >>> weighting = NadirSTCH(2, warm_up=0)
        >>> weighting(torch.tensor([1.0, 2.0]))
        tensor([1.0000, 0.5000])
        >>> weighting.end_epoch()
        >>> weighting(torch.tensor([1.0, 1.0]))  # the second has halved, the first has not moved
        tensor([1.3333, 0.6667])
    """

    epochs: Tensor
    nadir: Tensor

    def __init__(self, n_tasks: int, mu: float = 1.0, warm_up: int = 4) -> None:
        check_n_tasks(n_tasks)
        check_positive("mu", mu)
        check_not_negative("warm_up", warm_up)
        super().__init__()
        self.mu = mu
        self.warm_up = warm_up
        self.epoch = EpochMean(n_tasks)
        self.register_buffer("epochs", torch.zeros((), dtype=torch.int64))
        self.register_buffer("nadir", torch.full((n_tasks,), torch.nan))  # nan: not known

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]; counts `losses` for the mean of this epoch."""
        values = positive(self, losses)
        z = state_of(self, self.nadir, losses)
        self.epoch.add(losses, self._present)
        if self.epochs <= self.warm_up:
            return (1 / values).to(losses.dtype)
        relative = torch.where(z.isnan(), 0.0, values.log() - z.log())
        weights = len(losses) * torch.softmax(relative / self.mu, dim=0) / values
        return weights.to(losses.dtype)

    def end_epoch(self) -> None:
        """Move on: at the end of epoch `warm_up` its mean losses become the nadir."""
        if self.epochs == self.warm_up:
            self.nadir.copy_(self.epoch.mean_or(self.nadir))
        self.epochs += 1
        self.epoch.restart()
