"""Dual balancing."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from gradwright.engine.weights.bases import HeadRule, JacobianWeighting
from gradwright.weighting.arguments import check_fraction, check_n_tasks, check_not_negative
from gradwright.weighting.rows import RowMemory, as_given, combined, row_norms, scaled
from gradwright.weighting.values import positive


class DBMTL(JacobianWeighting):
    """Balances loss scales by logarithms, and gradient lengths by the longest one.

    y_k ← g_k / l_k + β_t (y_k - g_k / l_k), an average of the gradients of log l_k; the update is
    Σ max_j ||y_j|| / ||y_k|| · y_k. β_t = β / t^`decay` in step t = 1, 2, …; y starts at 0.

    **Keeps K × P numbers**, one averaged gradient per task. Losses need to be positive. Each head
    gets the gradient of its loss's logarithm, in the paper and in LibMTL.

    Lin, Jiang, Ye, Zhang, Chen, Chen, Liu, Tsang and Kwok, Dual-Balancing for Multi-Task Learning,
    arXiv 2023, https://arxiv.org/abs/2308.12029. As in LibMTL, by the same
    authors, without the 1e-8 that it adds to losses and lengths: a zero gradient stays zero.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter.

    Args:
        n_tasks: number of tasks.
        beta: β, the part of the average that is kept.
        decay: power of t in β_t; 0 keeps β the same.

    Example:
        >>> weighting = DBMTL(2, beta=0.0)
        >>> weighting([torch.tensor([[4.0, 0.0], [0.0, 1.0]])], torch.tensor([2.0, 1.0]))
        [tensor([2., 2.])]
    """

    paper_heads: ClassVar[HeadRule] = "log"
    libmtl_heads: ClassVar[HeadRule] = "log"

    steps: Tensor

    def __init__(self, n_tasks: int, beta: float = 0.9, decay: float = 0.0) -> None:
        check_n_tasks(n_tasks)
        check_fraction("beta", beta)
        check_not_negative("decay", decay)
        super().__init__()
        self.beta = beta
        self.decay = decay
        self.averages = RowMemory(n_tasks)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        factors = 1 / positive(self, losses)
        self.steps += 1
        beta = self.beta / int(self.steps) ** self.decay
        averages = []
        for memory, rows in zip(self.averages.like(jacobian), jacobian, strict=True):
            of_log = scaled(rows, factors)
            y = of_log + beta * (self.of_present(memory) - of_log)
            self.put_present(memory, y)
            averages.append(y)
        lengths = row_norms(averages)
        weights = torch.where(lengths > 0, lengths.max() / lengths, 0.0)
        return as_given(combined(averages, weights), jacobian)
