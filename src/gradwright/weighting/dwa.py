"""Dynamic weight average."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.arguments import check_n_tasks, check_positive
from gradwright.weighting.epoch_mean import EpochMean
from gradwright.weighting.values import state_of, wide


class DWA(LossWeighting):
    """Tasks whose loss falls slowest from epoch to epoch count most.

    w = K softmax(r / T) with r_k = mean loss of the last epoch / mean loss of the one before;
    w = 1 in the first two epochs.

    **Call `end_epoch()` after every epoch**, else the weights stay 1. A task without two epochs
    of losses yet, or whose loss was 0, has r = 1.

    Liu, Johns and Davison, End-To-End Multi-Task Learning With Attention, CVPR 2019, equation 7,
    https://arxiv.org/abs/1803.10704. As in LibMTL and TorchJD.

    Called with losses [task], returns weights [task] with sum K, the number of tasks in the step.

    Args:
        n_tasks: number of tasks.
        temperature: T; larger means more equal weights.

    Example:
        >>> weighting = DWA(2)
        >>> for losses in ([4.0, 4.0], [1.0, 4.0]):  # the second task does not improve
        ...     _ = weighting(torch.tensor(losses))
        ...     weighting.end_epoch()
        >>> weighting(torch.tensor([1.0, 4.0]))
        tensor([0.8147, 1.1853])
    """

    last: Tensor
    before: Tensor

    def __init__(self, n_tasks: int, temperature: float = 2.0) -> None:
        check_n_tasks(n_tasks)
        check_positive("temperature", temperature)
        super().__init__()
        self.temperature = temperature
        self.epoch = EpochMean(n_tasks)
        self.register_buffer("last", torch.full((n_tasks,), torch.nan))  # nan: not seen yet
        self.register_buffer("before", torch.full((n_tasks,), torch.nan))

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]; counts `losses` for the mean of this epoch."""
        rates = state_of(self, self._rates(), losses)
        self.epoch.add(losses, self._present)
        weights = len(losses) * torch.softmax(rates / self.temperature, dim=0)
        return weights.to(losses.dtype)

    def end_epoch(self) -> None:
        """Move on: the losses seen since the last call become those of the last epoch."""
        seen = self.epoch.batches > 0
        means = self.epoch.mean_or(self.last)
        self.before.copy_(torch.where(seen, self.last, self.before))
        self.last.copy_(means)
        self.epoch.restart()

    def _rates(self) -> Tensor:
        rates = wide(self.last) / wide(self.before)
        return torch.where(rates.isfinite(), rates, 1.0)
