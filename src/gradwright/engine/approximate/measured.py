"""How far an approximate step is from the exact one."""

import copy

import torch
from torch import Tensor

from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.result import ApproximationError
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import rows_of
from gradwright.engine.step import Step
from gradwright.engine.weights.asking import weights_of
from gradwright.engine.weights.bases import Weighting


def exact_weights(step: Step, weighting: Weighting) -> tuple[Tensor, Tensor]:
    """The exact Gramian [task, task], and what the method would answer to it: weights [task].

    The graph, the state of the method and the random numbers stay as they are.
    """
    gramian = _exact_gramian(Step(step.read, step.shared, step.heads, step.scale, keep=True))
    twin = copy.deepcopy(weighting)
    with torch.random.fork_rng(devices=[]):  # the approximate step meets the same random choices
        return gramian, weights_of(twin, gramian, step.read, scaled=step.scale != 1)


def error_of(
    gramian: Tensor | None, weights: Tensor, exact_gramian: Tensor, exact_weights: Tensor
) -> ApproximationError:
    """The error of a Gramian [task, task], if there is one, and of weights [task]."""
    G, w = exact_gramian, exact_weights
    off = weights - w
    length, exact_length = ((x @ G @ x).clamp(min=0).sqrt() for x in (weights, w))
    return ApproximationError(
        gramian=None if gramian is None else _up_to_a_factor(gramian, G),
        update=float((off @ G @ off).clamp(min=0).sqrt() / exact_length),
        cosine=float(weights @ G @ w / (length * exact_length)),
    )


def _exact_gramian(step: Step) -> Tensor:
    plan = step.plan()
    if has_reentrant(plan):
        rows, plan = reentrant_rows(plan, keep=True)
        rows = {edge: rows[edge] for edge in shared_leaves(plan, step.shared)}
    else:
        rows = rows_of(plan.only(set(shared_leaves(plan, step.shared))), keep=True)
    return gramian_of(rows.values(), plan.n_tasks) / step.scale**2


def _up_to_a_factor(gramian: Tensor, exact: Tensor) -> float:
    best = (gramian * exact).sum() / gramian.square().sum()
    return float((best * gramian - exact).norm() / exact.norm())
