"""The slow, obvious twin of the engine: one `torch.autograd.grad` per loss, rows kept dense."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Row = Tensor | None
"""The gradient of one loss at one leaf, dense; None where the loss does not reach the leaf."""


@dataclass(frozen=True)
class TaskGradients:
    """The gradients of all losses, [leaf][task]."""

    rows: list[list[Row]]

    @property
    def shared(self) -> list[bool]:
        """For each leaf, whether two or more losses reach it."""
        return [sum(row is not None for row in rows) > 1 for rows in self.rows]

    def gramian(self, shared: Sequence[bool] | None = None) -> Tensor:
        """The inner products over the shared leaves: [task, task], float64."""
        chosen = self.shared if shared is None else shared
        kept = [_stacked(rows) for rows, keep in zip(self.rows, chosen, strict=True) if keep]
        flat = torch.cat([part.double().reshape(len(part), -1) for part in kept], dim=1)
        return flat @ flat.T

    def combined(
        self, weights: Tensor, factors: Tensor, shared: Sequence[bool] | None = None
    ) -> list[Row]:
        """Σ weight × row at shared leaves, Σ factor × row at the others."""
        chosen = self.shared if shared is None else shared
        return [
            _sum(rows, weights if keep else factors)
            for rows, keep in zip(self.rows, chosen, strict=True)
        ]

    def jacobian(self) -> list[Tensor]:
        """The shared leaves' gradients, one tensor [task, *shape] per leaf."""
        return [_stacked(rows) for rows, keep in zip(self.rows, self.shared, strict=True) if keep]


def task_gradients(losses: Sequence[Tensor], leaves: Sequence[Tensor]) -> TaskGradients:
    """One backward per loss."""
    per_task = [
        torch.autograd.grad(loss, list(leaves), retain_graph=True, allow_unused=True)
        for loss in losses
    ]
    dense = [[None if row is None else row.to_dense() for row in rows] for rows in per_task]
    return TaskGradients([list(rows) for rows in zip(*dense, strict=True)])


def cosines_of(gramian: Tensor) -> Tensor:
    """G[i, j] / (|i| |j|), NaN where a gradient is zero."""
    norms = gramian.diagonal().sqrt()
    return gramian / norms[:, None] / norms


def update_of(
    gradients: TaskGradients, losses: Tensor, method: Callable[..., list[Tensor]]
) -> list[Row]:
    """What `method(jacobian, losses)` gives at shared leaves, the plain sum at the others."""
    update = iter(method(gradients.jacobian(), losses))
    ones = torch.ones(len(losses), dtype=torch.float64)
    return [
        next(update) if keep else _sum(rows, ones)
        for rows, keep in zip(gradients.rows, gradients.shared, strict=True)
    ]


def trainable(module: nn.Module) -> list[Tensor]:
    """The parameters that want a gradient, tied ones once."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _stacked(rows: Sequence[Row]) -> Tensor:
    like = next(row for row in rows if row is not None)
    return torch.stack([torch.zeros_like(like) if row is None else row for row in rows])


def _sum(rows: Sequence[Row], weights: Tensor) -> Row:
    terms = [
        weight * row for weight, row in zip(weights.tolist(), rows, strict=True) if row is not None
    ]
    return torch.stack(terms).sum(0) if terms else None
