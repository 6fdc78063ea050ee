"""Multi-objective gradient correction."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.rows import (
    RowMemory,
    as_given,
    combined,
    inner_products,
    row_norms,
    scaled,
)
from gradwright.weighting.share import put_share, share_of
from gradwright.weighting.solver import project_on_simplex


class MoCo(JacobianWeighting):
    """Averages each task's gradient over the steps, and moves the weights towards MGDA's.

    y ← y + β_t (g - y); λ ← Π(λ - γ_t (Y Yᵀ + ρ I) λ) with Π the projection to the simplex; the
    update is Yᵀ λ. β_t = β / t^`beta_decay`, γ_t = γ / t^`gamma_decay` in step t = 1, 2, …

    **Keeps K × P numbers**, one averaged gradient per task.

    Fernando, Shen, Liu, Chaudhury, Murugesan and Chen, Mitigating Gradient Bias in Multi-objective
    Learning: A Provably Convergent Approach, ICLR 2023,
    https://arxiv.org/abs/2210.12624. LibMTL first scales each gradient to its task's loss and uses
    a softmax for Π: `MoCo(n, by_loss=True, softmax=True)`. The step sizes are LibMTL's.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter. λ [task] is kept as `weights`.

    Args:
        n_tasks: number of tasks.
        beta: β, how fast the averages follow.
        beta_decay: power of t in β_t.
        gamma: γ, how fast the weights move.
        gamma_decay: power of t in γ_t.
        rho: ρ, pull towards equal weights.
        by_loss: scale each gradient to the length of its task's loss first.
        softmax: λ ← softmax(…) in place of the projection.

    Example:
        >>> weighting = MoCo(2, gamma=0.5)
        >>> weighting([torch.tensor([[2.0, 0.0], [0.0, 1.0]])], torch.ones(2))
        [tensor([0.4062, 0.2969])]
        >>> weighting.weights
        tensor([0.4062, 0.5938])
    """

    steps: Tensor
    weights: Tensor

    def __init__(
        self,
        n_tasks: int,
        beta: float = 0.5,
        beta_decay: float = 0.5,
        gamma: float = 0.1,
        gamma_decay: float = 0.5,
        rho: float = 0.0,
        by_loss: bool = False,
        softmax: bool = False,
    ) -> None:
        check_n_tasks(n_tasks)
        sizes = {"beta": beta, "beta_decay": beta_decay, "gamma": gamma}
        for name, value in {**sizes, "gamma_decay": gamma_decay, "rho": rho}.items():
            check_not_negative(name, value)
        super().__init__()
        self.beta, self.beta_decay = beta, beta_decay
        self.gamma, self.gamma_decay = gamma, gamma_decay
        self.rho, self.by_loss, self.softmax = rho, by_loss, softmax
        self.averages = RowMemory(n_tasks)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("weights", torch.full((n_tasks,), 1 / n_tasks))

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        self.steps += 1
        t = int(self.steps)
        averages = self._follow(jacobian, losses, self.beta / t**self.beta_decay)
        weights = share_of(self, self.weights, losses)
        slope = inner_products(averages, averages) @ weights + self.rho * weights
        moved = weights - self.gamma / t**self.gamma_decay * slope
        weights = torch.softmax(moved, 0) if self.softmax else project_on_simplex(moved)
        put_share(self, self.weights, weights)
        return as_given(combined(averages, weights), jacobian)

    def _follow(self, jacobian: Sequence[Tensor], losses: Tensor, beta: float) -> list[Tensor]:
        factors = torch.ones_like(losses)
        if self.by_loss:
            lengths = row_norms(jacobian)
            factors = torch.where(lengths > 0, losses.to(lengths) / lengths, 0.0)
        averages = []
        for memory, rows in zip(self.averages.like(jacobian), jacobian, strict=True):
            y = self.of_present(memory)
            y = y + beta * (scaled(rows, factors) - y)
            self.put_present(memory, y)
            averages.append(y)
        return averages
