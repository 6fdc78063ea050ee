"""Smoothed weights."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    LossWeighting,
    Weighting,
)
from gradwright.weighting.arguments import check_n_tasks, finite_vector
from gradwright.weighting.checks import check_n_present
from gradwright.weighting.wrapped import take_head_rules, weights_inside


class CRMOGM(Weighting):
    """A method whose weights change slowly: a moving average of those that it gives.

    w ← alpha w + (1 - alpha) v, for the weights v of the method in this step.

    Zhou, Zhang, Jiang, Zhong, Gu and Zhu, On the Convergence of Stochastic Multi-Objective Gradient
    Manipulation and Beyond, NeurIPS 2022, algorithm 1,
    https://openreview.net/forum?id=ScwfQ7hdwyP. The average starts at the first weights, as in
    TorchJD, or at `start`. A task missing from a batch keeps its own.

    CRMOGM(method) reads what the method reads, and is of its kind; its heads are treated as those
    of the method. Methods that give an update instead of weights cannot be smoothed.

    Args:
        weighting: the method; its own calls, such as `end_epoch`, are
            `crmogm.weighting.end_epoch()`.
        n_tasks: number of tasks; the average [task] is a buffer.
        alpha: how much of the average is kept in each step; may be set between steps.
        start: the average before the first step.

    Example:
        >>> from gradwright.weighting.imtlg import IMTLG
        >>> crmogm = CRMOGM(IMTLG(), n_tasks=2)
        >>> crmogm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.3333, 0.6667])
        >>> crmogm(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor([0.3500, 0.6500])
    """

    average: Tensor
    started: Tensor

    def __new__(
        cls,
        weighting: Weighting | None = None,
        n_tasks: int = 0,
        alpha: float = 0.9,
        start: Sequence[float] | Tensor | None = None,
    ) -> "CRMOGM":
        """An object of the kind that reads what `weighting` reads.

        Copying calls this without arguments, for the kind that it copies.
        """
        if cls is not CRMOGM:
            return super().__new__(cls)
        return super().__new__(_kind_of(weighting))

    def __init__(
        self,
        weighting: Weighting,
        n_tasks: int,
        alpha: float = 0.9,
        start: Sequence[float] | Tensor | None = None,
    ) -> None:
        check_n_tasks(n_tasks)
        if not 0 <= alpha <= 1:
            raise ValueError(f"`alpha` needs to be from 0 to 1: got {alpha}.")
        super().__init__()
        self.weighting = weighting
        self.alpha = alpha
        average = torch.zeros(n_tasks) if start is None else finite_vector("start", start)
        check_n_present(self, n_tasks, len(average))
        self.register_buffer("average", average.double())
        self.register_buffer("started", torch.full((n_tasks,), start is not None))
        take_head_rules(self, weighting)

    def _get_name(self) -> str:
        return "CRMOGM"  # and not that of the kind: users never meet it

    def smoothed(self, *read: Tensor) -> Tensor:
        """The average [task] after this step, in which the method reads `read`."""
        new = weights_inside(self, self.weighting, *read)
        average = self.of_present(self.average).to(new.device)
        check_n_present(self, len(average), len(new))
        before = torch.where(self.of_present(self.started).to(new.device), average, new)
        after = self.alpha * before + (1 - self.alpha) * new
        self.put_present(self.average, after)
        self.put_present(self.started, torch.ones_like(after, dtype=torch.bool))
        return after.to(new)


class CRMOGMOfLosses(CRMOGM, LossWeighting):
    """`CRMOGM` of a method that reads losses."""

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]."""
        return self.smoothed(losses)


class CRMOGMOfGramian(CRMOGM, GramianWeighting):
    """`CRMOGM` of a method that reads a Gramian."""

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task]."""
        return self.smoothed(gramian)


class CRMOGMOfGramianAndLosses(CRMOGM, GramianLossWeighting):
    """`CRMOGM` of a method that reads a Gramian and losses."""

    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        """Weights [task]."""
        return self.smoothed(gramian, losses)


class CRMOGMOfCrossGramian(CRMOGM, CrossGramianWeighting):
    """`CRMOGM` of a method that reads two batches."""

    def forward(self, cross_gramian: Tensor) -> Tensor:
        """Weights [task]."""
        return self.smoothed(cross_gramian)


def _kind_of(weighting: Weighting | None) -> type[CRMOGM]:
    """The kind of `CRMOGM` that reads what `weighting` reads."""
    if isinstance(weighting, LossWeighting):
        return CRMOGMOfLosses
    if isinstance(weighting, GramianWeighting):
        return CRMOGMOfGramian
    if isinstance(weighting, GramianLossWeighting):
        return CRMOGMOfGramianAndLosses
    if isinstance(weighting, CrossGramianWeighting):
        return CRMOGMOfCrossGramian
    raise ValueError(
        f"`CRMOGM` needs a method that gives weights: {type(weighting).__name__} gives an update."
    )
