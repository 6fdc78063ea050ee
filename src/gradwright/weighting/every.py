"""Weights that are used for several steps."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    Weighting,
)
from gradwright.weighting.arguments import check_n_tasks
from gradwright.weighting.checks import check_n_present, read_gramian
from gradwright.weighting.kept_weights import KeptWeights
from gradwright.weighting.wrapped import take_head_rules, weights_inside


class Every(Weighting):
    """A method that is asked in one of `steps` steps; the others use its last weights.

    **Approximate**: between, the weights are those of older gradients. With r the cost of a step
    in which the method is asked, in backwards, a step costs 1 + (r - 1) / `steps` on average:
    `gradwright.backward` runs one backward where it needs no new weights.

    A task that is absent from a batch keeps its weight. If one appears that has none yet, the
    method is asked in that step, too; that does not move the turns. In a batch without some of
    the tasks, the others keep the weights that they had beside them.

    As in the code of Navon et al., Multi-Task Learning as a Bargaining Game, ICML 2022,
    https://arxiv.org/abs/2202.01017, for any method. benchmarks/approximate.py prints what it does
    to the update.

    Every(method) reads what the method reads, and is of its kind; its heads are treated as those
    of the method, its `max_norm` holds in every step. It has to be outermost: `Every(Log(MGDA()))`.

    Args:
        weighting: a method that reads a Gramian, or that of two batches.
        n_tasks: number of tasks; the weights [task] are a buffer.
        steps: how many steps, new weights included, use the same weights.
        measure_error: in the steps between, also find what the method would say, at its full
            cost, and give the error with the route.

    Example:
        >>> from gradwright.weighting.imtlg import IMTLG
        >>> every = Every(IMTLG(), n_tasks=2, steps=10)
        >>> every(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.3333, 0.6667])
        >>> every(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor([0.3333, 0.6667])
        >>> every.due
        False
    """

    def __new__(
        cls,
        weighting: Weighting | None = None,
        n_tasks: int = 0,
        steps: int = 0,
        *,
        measure_error: bool = False,
    ) -> "Every":
        """An object of the kind that reads what `weighting` reads.

        Copying calls this without arguments, for the kind that it copies.
        """
        if cls is not Every:
            return super().__new__(cls)
        return super().__new__(_kind_of(weighting))

    def __init__(
        self, weighting: Weighting, n_tasks: int, steps: int, *, measure_error: bool = False
    ) -> None:
        check_n_tasks(n_tasks)
        if measure_error and isinstance(weighting, CrossGramianWeighting):
            raise ValueError(
                f"`measure_error` asks {type(weighting).__name__} in every step, but it reads "
                "batches that are not there in between: leave it out."
            )
        if steps < 1:
            raise ValueError(f"`steps` needs to be 1 or more: got {steps}.")
        super().__init__()
        self.weighting = weighting
        self.measure_error = measure_error
        self.n_tasks = n_tasks
        self.kept = KeptWeights(n_tasks, steps)
        self.max_norm = weighting.max_norm
        take_head_rules(self, weighting)

    def _get_name(self) -> str:
        return "Every"  # and not that of the kind: users never meet it

    @property
    def due(self) -> bool:
        """Whether the next step asks the method: other batches need not be run if not."""
        return self.kept.due(self)

    def known_weights(self, losses: Tensor) -> Tensor | None:
        """Weights [task] of an earlier step, where they still serve."""
        return self.kept.use(self)

    def to_measure(self) -> Weighting | None:
        """The method inside, if the error is to be measured."""
        return self.weighting if self.measure_error else None

    def weigh(self, *read: Tensor) -> Tensor:
        """Weights [task], new ones if they are due, from what the method reads."""
        G = read_gramian(read[0])
        check_n_present(self, len(self.of_present(self.kept.weights)), len(G))
        weights = self.kept.use(self)
        if weights is None:
            weights = weights_inside(self, self.weighting, *read)
            self.kept.renew(self, weights, known=torch.ones_like(weights, dtype=torch.bool))
        return weights.to(read[0])


class EveryOfGramian(Every, GramianWeighting):
    """`Every` of a method that reads a Gramian."""

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task]."""
        return self.weigh(gramian)


class EveryOfGramianAndLosses(Every, GramianLossWeighting):
    """`Every` of a method that reads a Gramian and losses."""

    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        """Weights [task]."""
        return self.weigh(gramian, losses)


class EveryOfCrossGramian(Every, CrossGramianWeighting):
    """`Every` of a method that reads two batches."""

    def forward(self, cross_gramian: Tensor) -> Tensor:
        """Weights [task]."""
        return self.weigh(cross_gramian)


def _kind_of(weighting: Weighting | None) -> type[Every]:
    """The kind of `Every` that reads what `weighting` reads."""
    if isinstance(weighting, GramianWeighting):
        return EveryOfGramian
    if isinstance(weighting, GramianLossWeighting):
        return EveryOfGramianAndLosses
    if isinstance(weighting, CrossGramianWeighting):
        return EveryOfCrossGramian
    raise ValueError(
        "`Every` needs a method that reads a Gramian: got "
        f"{type(weighting).__name__}. What reads the losses alone costs one backward as it is, "
        "and what reads the rows gives an update, not weights."
    )
