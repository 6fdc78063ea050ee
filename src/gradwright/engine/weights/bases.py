"""What a weighting is: it reads something of K losses and says how much each of them counts.

The base that a method extends says what it reads, and so what a step costs:

    LossWeighting          the values of the losses          one backward
    Scalarization          the same, given as one scalar     one backward
    GramianWeighting       G = J Jᵀ, the inner products      K backwards, J need not exist
    GramianLossWeighting   G, and the losses                 the same
    GroupWeighting         G for each group of parameters    K backwards, J is kept
    CrossGramianWeighting  J₁ J₂ᵀ of two further batches     2 K + 1 backwards, both J are kept
    JacobianWeighting      J, one row per task               K backwards, J is kept
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from gradwright.engine.basics.write import add_to_grad

HeadRule = Literal["weighted", "unweighted", "mean", "log"]
"""What a head's own gradient is multiplied by: its task's weight, 1, 1 / number of tasks, or
1 / its task's loss (the gradient of the loss's logarithm)."""

HeadBatches = Literal["trained", "mean", "sum"]
"""Of several batches, those whose gradients the heads get: the one that is trained on, all."""


class Weighting(nn.Module, ABC):
    """Base of all weightings: an `nn.Module`, so that state is saved with the model.

    State lives in buffers and parameters only, one entry per task where it belongs to a task.
    Where a batch has no labels for some tasks, `only` picks the entries of those present.
    """

    paper_heads: ClassVar[HeadRule] = "unweighted"
    libmtl_heads: ClassVar[HeadRule] = "unweighted"
    torchjd_heads: ClassVar[HeadRule] = "unweighted"

    n_tasks: int | None = None  # where state or an argument belongs to single tasks
    max_norm: float | None = None  # longest update of the shared parameters under known weights

    _present: Tensor | None = None

    def _get_name(self) -> str:
        """What it is called in messages, and by `nn.Module` when it is printed."""
        return type(self).__name__

    @contextmanager
    def only(self, tasks: Tensor) -> Iterator[None]:
        """Within the block, speak of these tasks alone (their positions, an integer tensor [n])."""
        before, self._present = self._present, tasks
        try:
            yield
        finally:
            self._present = before

    def of_present(self, state: Tensor) -> Tensor:
        """The entries of `state` [task, ...] that belong to the tasks of this step."""
        return state if self._present is None else state[self._present.to(state.device)]

    def put_present(self, state: Tensor, values: Tensor) -> None:
        """Write `values` over the entries of `state` that belong to the tasks of this step."""
        if self._present is None:
            state.copy_(values)
        else:
            state[self._present.to(state.device)] = values.to(state)

    def known_weights(self, losses: Tensor) -> Tensor | None:
        """The weights [task] of this step where it needs no gradients for them, or None.

        One backward is then enough. Called once per step, with the losses [task]; where it
        returns weights, this was the method's step, and it is not called again.
        """
        return None

    def to_measure(self) -> "Weighting | None":
        """The method whose weights for the exact Gramian the known ones are to be compared with."""
        return None


class LossWeighting(Weighting):
    """A method that reads the values of the losses alone."""

    paper_heads: ClassVar[HeadRule] = "weighted"
    libmtl_heads: ClassVar[HeadRule] = "weighted"
    torchjd_heads: ClassVar[HeadRule] = "weighted"

    @abstractmethod
    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task] for these losses [task], which carry no graph."""


class Scalarization(LossWeighting):
    """A method whose paper gives one scalar f(losses): the weights are its gradient."""

    @abstractmethod
    def total(self, losses: Tensor) -> Tensor:
        """The scalar f(losses), differentiable in `losses` [task] and in the parameters here."""

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task] = ∂f/∂losses; the gradient of this module's parameters is added too."""
        values = losses.detach().requires_grad_()
        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        with torch.enable_grad():
            total = self.total(values)
        weights, *gradients = torch.autograd.grad(total, [values, *own], allow_unused=True)
        assert weights is not None
        if weights.isfinite().all():  # or else the step is refused
            for parameter, gradient in zip(own, gradients, strict=True):
                if gradient is not None:
                    add_to_grad(parameter, gradient)
        return weights


class GramianWeighting(Weighting):
    """A method that reads the inner products of the tasks' gradients."""

    @abstractmethod
    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task] for this Gramian [task, task]."""


class GramianLossWeighting(Weighting):
    """A method that reads the inner products of the tasks' gradients, and the losses."""

    @abstractmethod
    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        """Weights [task] for this Gramian [task, task] and these losses [task]."""


class GroupWeighting(Weighting):
    """A method with weights of its own for each group of shared parameters."""

    @property
    @abstractmethod
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in order."""

    @abstractmethod
    def forward(self, gramians: Tensor, losses: Tensor) -> Tensor:
        """Weights [group, task] for these Gramians [group, task, task] and losses [task]."""


class CrossGramianWeighting(Weighting):
    """A method that reads two independent batches, and whose weights are for a third."""

    libmtl_head_batches: ClassVar[HeadBatches] = "trained"

    @abstractmethod
    def forward(self, cross_gramian: Tensor) -> Tensor:
        """Weights [task] for J₁ J₂ᵀ [task, task], the rows of one batch times those of another."""


class JacobianWeighting(Weighting):
    """A method that needs every task's gradient itself."""

    @abstractmethod
    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per shared parameter.

        `jacobian` has one tensor [task, *shape] per shared parameter, `losses` is [task].
        """

    def task_weights(self) -> Tensor | None:
        """The weights [task] of the last update, where the method has one number per task."""
        return None
