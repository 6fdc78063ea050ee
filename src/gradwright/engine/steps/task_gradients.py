"""Methods that read the tasks' gradients: their Gramian, or the rows of the Jacobian themselves."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.write import add_all
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.plan.stages import Plan
from gradwright.engine.result import Backward, Route
from gradwright.engine.routes.choice import RouteChoice, choose
from gradwright.engine.routes.lean import Lean
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import KeptRows, rows_of
from gradwright.engine.step import Step
from gradwright.engine.steps.row_update import update_of_rows
from gradwright.engine.weights.asking import weights_of
from gradwright.engine.weights.bases import JacobianWeighting, Weighting

_BENT = "a hook is not linear, so Jᵀw took one backward per task once more"

Gradients = Iterable[tuple[GradientEdge, Tensor]]


def backward_of_tasks(step: Step, weighting: Weighting, choice: RouteChoice) -> Backward:
    """One backward per task, then one gradient per parameter from them."""
    tasks, plan, route = _run(step, weighting, choice)
    gramian = None
    if isinstance(weighting, JacobianWeighting):
        assert isinstance(tasks, KeptRows)
        update, weights = update_of_rows(weighting, tasks, step.read, step.scale)
        factors = step.factors(weighting, weights)
        gradients: Gradients = chain(update, tasks.combine(factors, factors))
    else:
        gramian = tasks.gramian / step.scale**2
        weights = weights_of(weighting, gramian, step.read, scaled=step.scale != 1)
        gradients = tasks.combine(weights, step.factors(weighting, weights))
    add_all(plan.leaves, gradients)
    if isinstance(tasks, Lean) and not tasks.is_linear:
        route = replace(route, why=f"{route.why}; {_BENT}")
    return step.result(weights, gramian, route)


def _run(
    step: Step, weighting: Weighting, choice: RouteChoice
) -> tuple[KeptRows | Lean, Plan, Route]:
    plan = step.plan()
    if has_reentrant(plan):
        rows, plan = reentrant_rows(plan, keep=step.keep)
        why = "a reentrant checkpoint allows nothing but plain backward calls, one per task"
        return KeptRows(plan, shared_leaves(plan, step.shared), rows), plan, Route("rows", why)
    meeting = shared_leaves(plan, step.shared)
    lean, route = choose(plan, meeting, weighting, choice)
    if lean is not None:
        return Lean(lean, meeting), plan, route
    return KeptRows(plan, meeting, rows_of(plan, keep=step.keep)), plan, route
