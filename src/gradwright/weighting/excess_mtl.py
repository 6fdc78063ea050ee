"""Weights by excess risk."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from gradwright.engine.weights.bases import HeadRule, JacobianWeighting
from gradwright.weighting.arguments import check_n_tasks, check_positive
from gradwright.weighting.rows import RowMemory, as_given, combined
from gradwright.weighting.share import put_share, share_of
from gradwright.weighting.values import state_of, wide


class ExcessMTL(JacobianWeighting):
    """Tasks that are furthest from their best, by a second-order estimate, gain weight.

    S_k ← S_k + g_k²; excess e_k = Σ g_k² / sqrt(S_k + 1e-7), divided by its mean over the task's
    first `warm_up` steps; α ← α exp(η e), scaled to sum 1. The weights are K α, so they start at
    1 and stay there in the warm-up.

    **Keeps K × P numbers**, one sum of squared gradients per task. Steps in which a task has no
    gradient do not count for its warm-up.

    He, Zhou, Zhang, Yun, Xu, Zeng, Chilimbi and Zhao, Robust Multi-Task Learning with Excess
    Risks, ICML 2024, equations 6, 7 and 9, https://proceedings.mlr.press/v235/he24n.html. As in
    the official code and LibMTL; the paper's appendix has a warm-up of 3 epochs. TorchJD's weights
    sum to 1, its η is 1, and without a warm-up its first step counts raw excesses.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter. α [task] is kept as `shares`. Equation 9 and both
    codes weight whole losses, so the heads get K α as well.

    Args:
        n_tasks: number of tasks.
        step_size: η; LibMTL's 0.01.
        warm_up: number of steps whose excesses are the measure; 1 or more.

    Example:
        >>> weighting = ExcessMTL(2, step_size=1.0)
        >>> jacobian = [torch.tensor([[3.0, 0.0], [0.0, 1.0]])]
        >>> weighting(jacobian, torch.ones(2))
        [tensor([3., 1.])]
        >>> weighting([jacobian[0] * torch.tensor([[1.0], [2.0]])], torch.ones(2))
        [tensor([1.5191, 2.9873])]
    """

    paper_heads: ClassVar[HeadRule] = "weighted"
    libmtl_heads: ClassVar[HeadRule] = "weighted"

    shares: Tensor
    baseline: Tensor
    seen: Tensor

    def __init__(self, n_tasks: int, step_size: float = 0.01, warm_up: int = 1) -> None:
        check_n_tasks(n_tasks)
        check_positive("step_size", step_size)
        check_positive("warm_up", warm_up)
        super().__init__()
        self.step_size = step_size
        self.warm_up = warm_up
        self.squares = RowMemory(n_tasks)
        self.register_buffer("shares", torch.full((n_tasks,), 1 / n_tasks))
        self.register_buffer("baseline", torch.zeros(n_tasks))  # sum over the warm-up
        self.register_buffer("seen", torch.zeros(n_tasks))

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        relative = self._relative(self._excess(jacobian), losses)
        alpha = share_of(self, self.shares, losses)
        alpha = torch.softmax(alpha.log() + self.step_size * relative, dim=0)
        put_share(self, self.shares, alpha)
        return as_given(combined(jacobian, len(losses) * alpha), jacobian)

    def task_weights(self) -> Tensor:
        """K α [task], for K tasks in this step: the heads follow them, as the losses do."""
        present = self.of_present(self.shares)
        return len(present) * share_of(self, self.shares, present)

    def _excess(self, jacobian: Sequence[Tensor]) -> Tensor:
        excess = []
        for memory, rows in zip(self.squares.like(jacobian), jacobian, strict=True):
            S = self.of_present(memory) + rows.to(memory.dtype).square()
            self.put_present(memory, S)
            e = wide(rows).square() / (wide(S) + 1e-7).sqrt()
            excess.append(e.flatten(1).sum(1))
        return torch.stack(excess).sum(0)

    def _relative(self, excess: Tensor, losses: Tensor) -> Tensor:
        """Excess by its mean in the warm-up; 1 for tasks that are still in it."""
        seen, baseline = (state_of(self, state, losses) for state in (self.seen, self.baseline))
        warming = seen < self.warm_up
        excess = excess.to(self.baseline.dtype).to(excess)  # 0 if too small to remember
        counts = warming & (excess > 0)
        self.put_present(self.seen, seen + counts)
        self.put_present(self.baseline, baseline + torch.where(counts, excess, 0.0))
        return torch.where(warming, 1.0, excess * self.warm_up / baseline)
