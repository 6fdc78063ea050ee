"""The slow, obvious twin of a step that reads several batches: every Jacobian is one matrix."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.reference.task_gradients import Row, TaskGradients, task_gradients

Weigh = Callable[[Tensor], Tensor]
"""Weights [task] for J₁ J₂ᵀ [task, task]."""


def step_of_batches(
    batches: Sequence[Sequence[Tensor]],
    leaves: Sequence[Tensor],
    weigh: Weigh,
    heads: Callable[[Tensor], Sequence[Tensor]],
) -> tuple[Tensor, list[Row]]:
    """The weights and the gradient of each leaf; `batches` are `losses` and then `other`.

    Of three batches, the second and third give the weights and the first is trained on; of two,
    both. `heads(weights)` has what the heads are multiplied by [task], for each batch.
    """
    gradients = [task_gradients(losses, leaves) for losses in batches]
    shared = gradients[0].shared
    left, right = (flat(each, shared) for each in gradients[-2:])
    weights = weigh(left @ right.T)
    trained = 2 if len(batches) == 2 else 1
    none = torch.zeros_like(weights)
    parts = [
        each.combined(weights / trained if position < trained else none, factors, shared)
        for position, (each, factors) in enumerate(zip(gradients, heads(weights), strict=True))
    ]
    return weights, [_sum(part) for part in zip(*parts, strict=True)]


def flat(gradients: TaskGradients, shared: Sequence[bool]) -> Tensor:
    """The Jacobian of the shared leaves [task, parameter], zero where a task reaches it not."""
    columns = []
    for rows, keep in zip(gradients.rows, shared, strict=True):
        if keep:
            like = next(row for row in rows if row is not None)
            full = [torch.zeros_like(like) if row is None else row for row in rows]
            columns.append(torch.stack(full).flatten(1))
    return torch.cat(columns, dim=1).double()


def _sum(parts: Sequence[Row]) -> Row:
    there = [part for part in parts if part is not None]
    return torch.stack(there).sum(0) if there else None
