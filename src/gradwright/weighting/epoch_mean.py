"""The mean loss of each task over an epoch."""

import torch
from torch import Tensor, nn


class EpochMean(nn.Module):
    """Sums the losses of each task and counts its batches; a task may be missing from some."""

    total: Tensor
    batches: Tensor

    def __init__(self, n_tasks: int) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(n_tasks))
        self.register_buffer("batches", torch.zeros(n_tasks))

    def add(self, losses: Tensor, tasks: Tensor | None) -> None:
        """Count these losses [task], of all tasks or of those at the positions `tasks`."""
        values = losses.detach().to(self.total)
        if tasks is None:
            self.total += values
            self.batches += 1
        else:
            self.total[tasks] += values
            self.batches[tasks] += 1

    def mean_or(self, unseen: Tensor) -> Tensor:
        """Mean loss [task] since the start; `unseen` [task] for tasks that had no batch."""
        return torch.where(self.batches > 0, self.total / self.batches.clamp(min=1), unseen)

    def restart(self) -> None:
        """Forget everything: a new epoch begins."""
        self.total.zero_()
        self.batches.zero_()
