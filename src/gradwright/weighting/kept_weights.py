"""The weights of an earlier step, kept for those until the method is asked again."""

import torch
from torch import Tensor, nn

from gradwright.engine.weights.bases import Weighting


class KeptWeights(nn.Module):
    """Weights [task] that are new in one of `every` steps; a task has none before its first.

    Its methods speak of the tasks of this step, which `owner` knows.
    """

    weights: Tensor
    known: Tensor
    steps: Tensor

    def __init__(self, n_tasks: int, every: int) -> None:
        super().__init__()
        self.every = every
        self.register_buffer("weights", torch.zeros(n_tasks, dtype=torch.float64))
        self.register_buffer("known", torch.zeros(n_tasks, dtype=torch.bool))
        self.register_buffer("steps", torch.tensor(0))

    def due(self, owner: Weighting) -> bool:
        """Whether this step needs new weights: it is the turn, or a task has none yet."""
        return int(self.steps) % self.every == 0 or not bool(owner.of_present(self.known).all())

    def use(self, owner: Weighting) -> Tensor | None:
        """The kept weights [task] for this step, which counts; None, and no step, if it is due."""
        if self.due(owner):
            return None
        self.steps += 1
        return owner.of_present(self.weights).clone()

    def renew(self, owner: Weighting, weights: Tensor, known: Tensor) -> None:
        """Keep new `weights` [task] of this step, which counts; not those that are not `known`."""
        owner.put_present(self.weights, weights.to(self.weights))
        owner.put_present(self.known, known.to(self.known))
        self.steps += 1
