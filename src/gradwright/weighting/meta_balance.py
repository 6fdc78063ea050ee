"""Auxiliary gradients brought to the length of a target task's."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting
from gradwright.weighting.arguments import check_fraction, check_n_tasks
from gradwright.weighting.rows import RowMemory, as_given, combined, norms


class MetaBalance(JacobianWeighting):
    """In each parameter, brings the other tasks' gradients towards the target task's length.

    n_k ← β n_k + (1 - β) ||g_k||, per parameter tensor; the update is
    Σ_k (r n_target / n_k + 1 - r) g_k.

    He, Feng, Cheng, Ji, Guo and Caverlee, MetaBalance: Improving Multi-Task Recommendations via
    Adapting Gradient Magnitudes of Auxiliary Tasks, WWW 2022,
    https://arxiv.org/abs/2203.06801. As in the official code, where the target is the first task;
    a task whose gradient has always been 0 stays at 0 here and is NaN there. The averages start at
    0, and each is corrected for it, which matters only if tasks are missing from some steps.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter.

    Args:
        n_tasks: number of tasks.
        relax: r, from 0 (the plain sum) up to but not including 1 (equal lengths).
        beta: β, the part of the averages that is kept.
        target: position of the target task.

    Example:
        >>> weighting = MetaBalance(2, relax=0.5)
        >>> weighting([torch.tensor([[1.0, 0.0], [0.0, 4.0]])], torch.ones(2))
        [tensor([1.0000, 2.5000])]
    """

    steps: Tensor

    def __init__(
        self, n_tasks: int, relax: float = 0.7, beta: float = 0.9, target: int = 0
    ) -> None:
        check_n_tasks(n_tasks)
        check_fraction("relax", relax)
        check_fraction("beta", beta)
        if not 0 <= target < n_tasks:
            raise ValueError(f"`target` needs to be from 0 to {n_tasks - 1}: got {target}.")
        super().__init__()
        self.relax = relax
        self.beta = beta
        self.target = target
        self.lengths = RowMemory(n_tasks)
        self.register_buffer("steps", torch.zeros(n_tasks))

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        self.put_present(self.steps, self.of_present(self.steps) + 1)
        now = [norms(rows) for rows in jacobian]
        update = []
        for memory, rows, length in zip(self.lengths.like(now), jacobian, now, strict=True):
            n = self.of_present(memory)
            self.put_present(memory, n + (1 - self.beta) * (length - n))
            update += combined([rows], self._factors(memory))
        return as_given(update, jacobian)

    def _factors(self, memory: Tensor) -> Tensor:
        steps = self.steps.to(memory)
        n = memory / (1 - self.beta**steps)  # nan for a task that has not come yet
        ratio = n[self.target] / self.of_present(n)
        ratio = torch.where(ratio.isfinite(), ratio, 1.0)
        return self.relax * ratio + 1 - self.relax
