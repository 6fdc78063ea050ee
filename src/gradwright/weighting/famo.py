"""Fast adaptive multi-task optimization."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.adam import Adam
from gradwright.weighting.arguments import check_n_tasks
from gradwright.weighting.values import positive, state_of


class FAMO(LossWeighting):
    """Brings all losses down at the same relative rate, without the tasks' gradients.

    w = (z / D) / Σ(z / D) with z = softmax(ξ) and D = l - min + 1e-8: the gradient of
    Σ z log D, scaled to sum 1. After the optimizer's step, δ = log D before - log D after says
    how much each task improved, and Adam moves ξ along -∂(δ · softmax ξ)/∂ξ.

    **Call `update(losses)` after `optimizer.step()`**, with the losses of the same batch computed
    again (`torch.no_grad()` will do), else the weights learn nothing. Batch norm in train mode
    counts such a batch twice. Losses need to be above `min_losses`.

    Liu, Feng, Stone and Liu, FAMO: Fast Adaptive Multitask Optimization, NeurIPS 2023,
    https://arxiv.org/abs/2306.03792. The weight decay is 0.001 as in LibMTL and TorchJD; the
    official code has 0.01 in famo.py and 1e-5 in its experiments.

    Called with losses [task], returns weights [task] with sum 1.

    Args:
        n_tasks: number of tasks.
        lr: Adam's learning rate for ξ.
        weight_decay: γ, which pulls ξ towards equal weights.
        min_losses: lowest value of each loss; by default 0.

    Example:
        >>> weighting = FAMO(2)
        >>> weighting(torch.tensor([1.0, 1.0]))
        tensor([0.5000, 0.5000])
        >>> weighting.update(torch.tensor([0.5, 1.0]))  # only the first has improved
        >>> weighting(torch.tensor([1.0, 1.0]))
        tensor([0.4875, 0.5125])
    """

    logits: Tensor
    losses: Tensor
    min_losses: Tensor

    def __init__(
        self,
        n_tasks: int,
        lr: float = 0.025,
        weight_decay: float = 1e-3,
        min_losses: Sequence[float] | Tensor | None = None,
    ) -> None:
        check_n_tasks(n_tasks)
        lowest = torch.as_tensor(0.0 if min_losses is None else min_losses).expand(n_tasks)
        super().__init__()
        self.adam = Adam(n_tasks, lr, weight_decay)
        self.register_buffer("logits", torch.zeros(n_tasks))
        self.register_buffer("losses", torch.full((n_tasks,), torch.nan))  # nan: not seen yet
        self.register_buffer("min_losses", lowest.to(torch.get_default_dtype(), copy=True))

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]; keeps the losses for `update`."""
        D = self._above(losses)
        self.put_present(self.losses, losses.detach())
        z = torch.softmax(state_of(self, self.logits, losses), dim=0)
        weights = z / D / (z / D).sum()
        return weights.to(losses.dtype)

    def update(self, losses: Tensor) -> None:
        """Learn from the losses [task] that the same batch has after the optimizer's step."""
        before = state_of(self, self.losses, losses)
        if before.isnan().any():
            raise ValueError("`FAMO.update` needs a step before it: call `FAMO` on losses first.")
        delta = self._above(before).log() - self._above(losses.detach()).log()
        z = torch.softmax(state_of(self, self.logits, losses), dim=0)
        self.adam.step(self.logits, z * (delta - z @ delta), self._present)

    def _above(self, losses: Tensor) -> Tensor:
        return positive(self, losses, state_of(self, self.min_losses, losses) - 1e-8)
