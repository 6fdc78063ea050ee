"""Methods that read the rows of the Jacobian themselves, and give the update."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.errors import LossError
from gradwright.engine.losses import TaskLosses
from gradwright.engine.routes.rows import KeptRows
from gradwright.engine.weights.asking import check_weights, not_finite, present_only
from gradwright.engine.weights.bases import JacobianWeighting

Update = list[tuple[GradientEdge, Tensor]]
"""The gradients of the shared leaves."""


def update_of_rows(
    weighting: JacobianWeighting, rows: KeptRows, read: TaskLosses, scale: float
) -> tuple[Update, Tensor | None]:
    """The update, and the weights [task] where the method has them; takes the rows out of `rows`.

    Raises:
        LossError: a row is not finite; not where the losses were scaled.
    """
    edges = [edge for edge, parts in rows.shared.items() if any(p is not None for p in parts)]
    jacobian = [_stacked(rows.shared.pop(edge)).div_(scale) for edge in edges]
    bad = ~torch.stack([_finite(part) for part in jacobian]).all(0)
    if bad.any() and scale == 1:
        raise LossError(not_finite(read, bad))
    if bad.any():  # the scaler will leave this step out
        update = [part.sum(0) for part in jacobian]
        weights: Tensor | None = torch.ones(len(bad), dtype=torch.float64)
    else:
        with present_only(weighting, read):
            update = weighting(jacobian, read.values)
            weights = weighting.task_weights()
    _check_update(weighting, update, jacobian)
    scaled = [gradient * scale for gradient in update]
    return list(zip(edges, scaled, strict=True)), check_weights(weighting, weights, read)


def _finite(rows: Tensor) -> Tensor:
    return rows.reshape(len(rows), -1).isfinite().all(dim=1).cpu()


def _check_update(
    weighting: JacobianWeighting, update: Sequence[Tensor], jacobian: Sequence[Tensor]
) -> None:
    found, expected = [list(u.shape) for u in update], [list(j.shape[1:]) for j in jacobian]
    if found != expected:
        raise ValueError(
            f"{weighting._get_name()} returned tensors of shapes {found}: there must be one per "
            f"shared parameter, {expected}."
        )


def _stacked(rows: list[Tensor | None]) -> Tensor:
    """The gradients of one parameter, [task, *shape]; zero where a task reaches it not."""
    like = next(row for row in rows if row is not None)
    zero = torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    dense = (zero if row is None else row.to_dense() if row.is_sparse else row for row in rows)
    return torch.stack(list(dense))
