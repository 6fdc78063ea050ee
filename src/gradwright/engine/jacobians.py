"""`jacobian` and `gramian`: the gradients of many losses, and their inner products, as values."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.pull import edge_of, pull
from gradwright.engine.errors import SharedError
from gradwright.engine.losses import Losses, read_losses
from gradwright.engine.plan.stages import plan_of
from gradwright.engine.plan.unstack import starts_of
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import rows_of


def jacobian(
    losses: Losses, inputs: Iterable[Tensor], *, retain_graph: bool = False
) -> list[Tensor]:
    """The gradient of every loss with respect to every input; no `.grad` is touched.

    Args:
        losses: One scalar per task, by name or in order, or one tensor [task]. The rows of a
            task given as None are zero.
        inputs: Parameters, or tensors computed from them (features).
        retain_graph: Keep what the graph saved.

    Returns:
        One tensor [task, *shape] per input; zero where a loss does not reach it.

    Raises:
        LossError: There is no loss, or one is no scalar, has no graph, is not finite or repeated.
        SharedError: An input requires no gradient.

    Example:
        >>> weight = torch.ones(3, requires_grad=True)
        >>> (rows,) = jacobian([weight.sum(), (2 * weight).sum()], [weight])
        >>> rows
        tensor([[1., 1., 1.],
                [2., 2., 2.]])
    """
    read = read_losses(losses)
    tensors = list(inputs)
    rows = _rows(read.tensors, tensors, retain_graph)
    stacked = (_stacked(of_one, tensor) for of_one, tensor in zip(rows, tensors, strict=True))
    return [_all_tasks(one, read.present, len(read.names)) for one in stacked]


def gramian(losses: Losses, inputs: Iterable[Tensor], *, retain_graph: bool = False) -> Tensor:
    """The inner products of the losses' gradients with respect to all inputs together.

    Arguments and errors are those of `jacobian`.

    Returns:
        [task, task], float64, on the CPU; zero for a task given as None.

    Example:
        >>> weight = torch.ones(3, requires_grad=True)
        >>> gramian([weight.sum(), (2 * weight).sum()], [weight])
        tensor([[ 3.,  6.],
                [ 6., 12.]], dtype=torch.float64)
    """
    read = read_losses(losses)
    products = gramian_of(_rows(read.tensors, list(inputs), retain_graph), len(read.tensors))
    return read.spread(products, absent=0.0)


def _rows(
    losses: Sequence[Tensor], inputs: Sequence[Tensor], retain_graph: bool
) -> list[list[Tensor | None]]:
    """The gradients [input][task]."""
    _check(inputs)
    edges = [edge_of(tensor) for tensor in inputs]
    computed = not all(tensor.is_leaf for tensor in inputs)
    starts = (
        [{edge_of(loss): torch.ones_like(loss)} for loss in losses]
        if computed  # they may be where the losses are joined
        else starts_of(losses, keep=retain_graph)
    )
    with torch.no_grad():
        if computed:
            last = len(starts) - 1
            passes = [
                pull(start, edges, keep=retain_graph or task != last)
                for task, start in enumerate(starts)
            ]
            return [list(of_one) for of_one in zip(*passes, strict=True)]
        plan = plan_of(starts)
        if has_reentrant(plan):
            rows, _ = reentrant_rows(plan, keep=retain_graph)
        else:
            rows = rows_of(plan.only(edges), keep=retain_graph)
    nothing: list[Tensor | None] = [None] * len(losses)
    return [rows.get(edge, nothing) for edge in edges]


def _check(inputs: Sequence[Tensor]) -> None:
    if not inputs:
        raise SharedError("`inputs` is empty: give the parameters or features to differentiate.")
    for position, tensor in enumerate(inputs):
        if not tensor.requires_grad:
            raise SharedError(
                f"`inputs` has at position {position} a tensor of shape {list(tensor.shape)} that "
                "requires no gradient."
            )


def _stacked(rows: Sequence[Tensor | None], like: Tensor) -> Tensor:
    zero = torch.zeros_like(like, requires_grad=False)
    dense = (zero if row is None else row.to_dense() if row.is_sparse else row for row in rows)
    return torch.stack(list(dense))


def _all_tasks(rows: Tensor, present: Sequence[int], n_tasks: int) -> Tensor:
    if len(present) == n_tasks:
        return rows
    return rows.new_zeros(n_tasks, *rows.shape[1:]).index_copy(
        0, torch.tensor(present, device=rows.device), rows
    )
