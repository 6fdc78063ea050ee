"""A step with the weights of an approximate Gramian, and how far off it is."""

from itertools import chain

from gradwright.engine.approximate.measured import error_of, exact_weights
from gradwright.engine.basics.combine import combined_rows
from gradwright.engine.basics.write import add_all
from gradwright.engine.errors import LossError
from gradwright.engine.plan.shared import shared_leaves
from gradwright.engine.result import Backward, Route
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.routes.clip import clip
from gradwright.engine.routes.heads_first import head_cuts, run_heads
from gradwright.engine.routes.known import gradients_of_known
from gradwright.engine.routes.reentrant import has_reentrant
from gradwright.engine.routes.rows import Rows
from gradwright.engine.step import Step
from gradwright.engine.weights.asking import weights_of
from gradwright.engine.weights.bases import Weighting


def backward_approximately(
    step: Step, weighting: Weighting, approximation: Approximation
) -> Backward:
    """The step of a method that reads a Gramian, given an approximate one."""
    exact = exact_weights(step, weighting) if approximation.measure_error else None
    plan = step.plan()
    if has_reentrant(plan):
        raise LossError(
            f"`route` is {type(approximation).__name__}, but a reentrant checkpoint takes plain "
            "backward calls of the whole graph: checkpoint with use_reentrant=False."
        )
    leaves, meeting = plan.leaves, shared_leaves(plan, step.shared)
    edges = approximation.edges(plan, meeting)
    cuts = head_cuts(plan, [*meeting, *edges])
    rows: Rows = {}
    if cuts is not None:
        plan, rows = run_heads(plan, cuts, keep=step.keep)
    names = [step.read.names[position] for position in step.read.present]
    gramian = approximation.gramian(plan, edges, names) / step.scale**2
    weights = weights_of(weighting, gramian, step.read, scaled=step.scale != 1)
    factors = step.factors(weighting, weights)
    found = gradients_of_known(plan, set(meeting), weights, factors, keep=step.keep)
    gradients = dict(chain(found, combined_rows(rows, factors)))
    weights = weights * clip(step, weighting, meeting, gradients)
    error = None if exact is None else error_of(gramian, weights, *exact)
    add_all(leaves, gradients.items())
    why = f"{weighting._get_name()} reads {approximation.what}, as asked for"
    return step.result(weights, gramian, Route(approximation.name, why, exact=False, error=error))
