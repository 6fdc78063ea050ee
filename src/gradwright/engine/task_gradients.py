"""Methods that read the tasks' gradients: their Gramian, or the rows of the Jacobian themselves."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.errors import LossError
from gradwright.engine.lean import Lean
from gradwright.engine.losses import TaskLosses
from gradwright.engine.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.result import Backward, Route
from gradwright.engine.routes import RouteChoice, choose
from gradwright.engine.rows import KeptRows, rows_of
from gradwright.engine.shared import shared_leaves
from gradwright.engine.stages import Plan, plan_of
from gradwright.engine.unstack import starts_of
from gradwright.engine.weighting import GramianLossWeighting, JacobianWeighting, Weighting
from gradwright.engine.weights import Heads, ask, head_factors, present_only
from gradwright.engine.write import add_to_grad

Gradients = Iterable[tuple[GradientEdge, Tensor]]


def backward_of_tasks(
    read: TaskLosses,
    weighting: Weighting,
    shared: Iterable[Tensor] | None,
    heads: Heads,
    scale: float,
    choice: RouteChoice,
) -> Backward:
    """One backward per task, then one gradient per parameter from them."""
    plan = plan_of(
        starts_of(read.tensors, scale, n_tasks=len(read.names), keep=choice.retain_graph)
    )
    tasks, plan, route = _run(plan, shared, weighting, choice)
    weights, gramian = None, None
    if isinstance(weighting, JacobianWeighting):
        assert isinstance(tasks, KeptRows)
        factors = head_factors(heads, weighting, None, plan.n_tasks)
        gradients = _from_rows(weighting, tasks, factors, read, scale)
    else:
        gramian = tasks.gramian / scale**2
        weights = _weights(weighting, gramian, read, scaled=scale != 1)
        gradients = tasks.combine(weights, head_factors(heads, weighting, weights, plan.n_tasks))
    _write(plan, gradients)
    return Backward(
        read.names,
        read.spread(read.values, torch.nan),
        None if weights is None else read.spread(weights, absent=0.0),
        None if gramian is None else read.spread(gramian, torch.nan),
        route,
    )


def _run(
    plan: Plan, shared: Iterable[Tensor] | None, weighting: Weighting, choice: RouteChoice
) -> tuple[KeptRows | Lean, Plan, Route]:
    if has_reentrant(plan):
        rows, plan = reentrant_rows(plan, keep=choice.retain_graph)
        why = "a reentrant checkpoint allows nothing but plain backward calls, one per task"
        return KeptRows(plan, shared_leaves(plan, shared), rows), plan, Route("rows", why)
    meeting = shared_leaves(plan, shared)
    lean, route = choose(plan, meeting, weighting, choice)
    if lean is not None:
        return Lean(lean, meeting), plan, route
    return KeptRows(plan, meeting, rows_of(plan, keep=choice.retain_graph)), plan, route


def _write(plan: Plan, gradients: Gradients) -> None:
    """Add to `.grad`; nothing is written unless all gradients could be computed."""
    leaves = plan.leaves
    for edge, gradient in list(gradients):
        add_to_grad(leaves[edge], gradient)


def _weights(weighting: Weighting, gramian: Tensor, read: TaskLosses, *, scaled: bool) -> Tensor:
    bad = ~gramian.diagonal().isfinite()
    if bad.any():
        if scaled:  # the gradients are infinite too, so the scaler will leave this step out
            return torch.ones(len(gramian), dtype=torch.float64)
        raise LossError(_not_finite(read, bad))
    if isinstance(weighting, GramianLossWeighting):
        return ask(weighting, read, gramian, read.values.to(gramian))
    return ask(weighting, read, gramian)


def _not_finite(read: TaskLosses, bad: Tensor) -> str:
    names = [repr(read.names[read.present[task]]) for task in bad.nonzero().flatten().tolist()]
    return (
        f"the gradient of loss {', '.join(names)} is not finite, although the loss is: no "
        "`.grad` was changed. torch.autograd.detect_anomaly() names the operation."
    )


def _from_rows(
    weighting: JacobianWeighting,
    rows: KeptRows,
    factors: Tensor,
    read: TaskLosses,
    scale: float,
) -> Iterator[tuple[GradientEdge, Tensor]]:
    edges = [edge for edge, parts in rows.shared.items() if any(p is not None for p in parts)]
    jacobian = [_stacked(rows.shared.pop(edge)).div_(scale) for edge in edges]
    bad = ~torch.stack([_finite(part) for part in jacobian]).all(0)
    if bad.any() and scale == 1:
        raise LossError(_not_finite(read, bad))
    if bad.any():  # the scaler will leave this step out
        update = [part.sum(0) for part in jacobian]
    else:
        with present_only(weighting, read):
            update = weighting(jacobian, read.values)
    _check_update(weighting, update, jacobian)
    yield from zip(edges, (gradient * scale for gradient in update), strict=True)
    yield from rows.combine(factors, factors)


def _finite(rows: Tensor) -> Tensor:
    return rows.reshape(len(rows), -1).isfinite().all(dim=1).cpu()


def _check_update(
    weighting: Weighting, update: Sequence[Tensor], jacobian: Sequence[Tensor]
) -> None:
    found, expected = [list(u.shape) for u in update], [list(j.shape[1:]) for j in jacobian]
    if found != expected:
        raise ValueError(
            f"{type(weighting).__name__} returned tensors of shapes {found}: there must be one per "
            f"shared parameter, {expected}."
        )


def _stacked(rows: list[Tensor | None]) -> Tensor:
    """The gradients of one parameter, [task, *shape]; zero where a task reaches it not."""
    like = next(row for row in rows if row is not None)
    zero = torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    dense = (zero if row is None else row.to_dense() if row.is_sparse else row for row in rows)
    return torch.stack(list(dense))
