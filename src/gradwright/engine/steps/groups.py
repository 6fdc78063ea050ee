"""Methods with weights of their own for each group of parameters: one Gramian per group."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.combine import weighted_sum
from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.write import add_all
from gradwright.engine.errors import LossError, SharedError
from gradwright.engine.losses import TaskLosses
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.plan.stages import Plan
from gradwright.engine.result import Backward, Route
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import Rows, rows_of
from gradwright.engine.step import Step
from gradwright.engine.weights.asking import ask_groups, not_finite
from gradwright.engine.weights.bases import GroupWeighting, Weighting

Groups = Mapping[str, Sequence[Tensor]]
"""The shared parameters of each group."""


def check_groups(shared: object, weighting: Weighting | None) -> None:
    """Refuse groups that nothing reads, and other groups than the method has.

    Raises:
        SharedError: with both sides' names.
    """
    if not isinstance(weighting, GroupWeighting):
        if isinstance(shared, Mapping):
            name = "a plain sum" if weighting is None else weighting._get_name()
            raise SharedError(
                f"`shared` has {len(shared)} groups, but {name} takes all parameters together: "
                "give a plain list of them, or a PerGroup weighting."
            )
        return
    if not isinstance(shared, Mapping) or set(shared) != set(weighting.groups):
        found = ", ".join(map(repr, shared)) if isinstance(shared, Mapping) else "no groups"
        raise SharedError(
            f"`weighting` has the groups {', '.join(map(repr, weighting.groups))}, so `shared` "
            f"needs the parameters of each of them by its name: got {found}."
        )


def backward_of_groups(step: Step, weighting: GroupWeighting, shared: Groups) -> Backward:
    """One backward per task; then each group is combined with weights of its own."""
    plan = step.plan()
    if has_reentrant(plan):
        rows, plan = reentrant_rows(plan, keep=step.keep)
        groups = _leaves_of(plan, weighting, shared)
    else:
        groups = _leaves_of(plan, weighting, shared)
        rows = rows_of(plan, keep=step.keep)
    read, n = step.read, plan.n_tasks
    gramians = torch.stack([gramian_of((rows[e] for e in edges), n) for edges in groups])
    gramians = gramians / step.scale**2
    weights = _weights(weighting, gramians, read, scaled=step.scale != 1)
    factors = step.factors(weighting, None)
    add_all(plan.leaves, list(_combined(rows, groups, weights, factors)))
    why = f"{weighting._get_name()} reads {len(groups)} Gramians of {n} rows"
    return replace(
        step.result(None, None, Route("groups", why)),
        weights=torch.stack([read.spread(each, absent=0.0) for each in weights]),
        gramian=torch.stack([read.spread(each, torch.nan) for each in gramians]),
    )


def _leaves_of(plan: Plan, weighting: GroupWeighting, shared: Groups) -> list[list[GradientEdge]]:
    """The leaves of each group.

    Raises:
        SharedError: a parameter is in two groups, or no loss reaches it.
    """
    groups = [shared_leaves(plan, shared[name]) for name in weighting.groups]
    home: dict[GradientEdge, str] = {}
    for name, edges in zip(weighting.groups, groups, strict=True):
        for edge in edges:
            if home.setdefault(edge, name) != name:
                raise SharedError(
                    f"`shared` has a parameter of shape {list(plan.leaves[edge].shape)} in two "
                    f"groups, {home[edge]!r} and {name!r}: it can follow the weights of one."
                )
    return groups


def _weights(
    weighting: GroupWeighting, gramians: Tensor, read: TaskLosses, *, scaled: bool
) -> Tensor:
    bad = ~gramians.diagonal(dim1=1, dim2=2).isfinite().all(dim=0)
    if not bad.any():
        return ask_groups(weighting, read, gramians)
    if scaled:  # the gradients are infinite too, so the scaler will leave this step out
        return torch.ones(gramians.shape[:2], dtype=torch.float64)
    raise LossError(not_finite(read, bad))


def _combined(
    rows: Rows, groups: Sequence[Sequence[GradientEdge]], weights: Tensor, heads: Tensor
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """The gradient of each leaf: Σ weight × row with its group's weights, else Σ head × row."""
    factors = dict.fromkeys(rows, heads.tolist())
    for edges, of_group in zip(groups, weights.tolist(), strict=True):
        factors |= dict.fromkeys(edges, of_group)
    for edge, of_tasks in factors.items():
        gradient = weighted_sum(rows.pop(edge), of_tasks)
        if gradient is not None:
            yield edge, gradient
