"""Which exact route runs, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from torch.autograd.graph import GradientEdge

from gradwright.engine.errors import LossError
from gradwright.engine.plan.frontier import size_of
from gradwright.engine.plan.stages import Plan
from gradwright.engine.result import Route
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.routes.lean import LeanPlan, lean_plan
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    JacobianWeighting,
    Weighting,
)

RouteName = Literal["auto", "rows", "lean"]


@dataclass(frozen=True, slots=True)
class RouteChoice:
    """What the user said of the route."""

    name: RouteName
    memory: int  # bytes that the rows may take
    retain_graph: bool


def check_route(route: RouteName | Approximation, weighting: Weighting | None) -> None:
    """Refuse an unknown route, and one that has not what the weighting reads.

    Raises:
        ValueError: with what it may be.
    """
    method = "a plain sum" if weighting is None else weighting._get_name()
    if isinstance(route, Approximation):
        if not isinstance(weighting, GramianWeighting | GramianLossWeighting):
            raise ValueError(
                f"`route` is {type(route).__name__}, which approximates the Gramian of all shared "
                f"parameters, but {method} does not read that: leave `route` out."
            )
    elif route not in get_args(RouteName):
        raise ValueError(
            f"`route` is {route!r}: it must be 'auto', 'rows' or 'lean', or an approximation: "
            "LastBlock(…), Features(…) or Sketch(…)."
        )
    elif route == "lean" and isinstance(weighting, CrossGramianWeighting | GroupWeighting):
        raise ValueError(
            f"`route` is 'lean', but {method} needs the rows (of two batches, or of each group of "
            "parameters): leave `route` out."
        )


def choose(
    plan: Plan, meeting: Sequence[GradientEdge], weighting: Weighting, choice: RouteChoice
) -> tuple[LeanPlan | None, Route]:
    """The plan of route "lean", or None for route "rows".

    Raises:
        LossError: route "lean" was asked for where it would not be exact.
    """
    method = weighting._get_name()
    size = plan.n_tasks * sum(size_of(edge) for edge in meeting)
    rows = f"{plan.n_tasks} rows take {_megabytes(size)}"
    if isinstance(weighting, JacobianWeighting):
        return None, Route("rows", f"{method} reads the rows of the Jacobian; {rows}")
    if choice.name == "rows" or (choice.name == "auto" and size <= choice.memory):
        why = (
            "was asked for" if choice.name == "rows" else f"of {_megabytes(choice.memory)} allowed"
        )
        return None, Route("rows", f"{method} reads the Gramian; {rows}, {why}")
    lean = None if choice.retain_graph else lean_plan(plan, meeting)
    if lean is None:
        why = _why_not_lean(choice)
        if choice.name == "lean":
            raise LossError(f"route='lean' would not be exact: {why}. Leave `route` out.")
        return None, Route("rows", f"{method} reads the Gramian; {rows}; not lean: {why}")
    return lean, Route("lean", f"{method} reads the Gramian, and {rows}")


def _why_not_lean(choice: RouteChoice) -> str:
    if choice.retain_graph:
        return "`retain_graph` asks to keep what it frees"
    return (
        "a hook sits where the graph would be cut, or a head reads several levels of the shared "
        "part (or one of its weights)"
    )


def _megabytes(size: int) -> str:
    return f"{size / 2**20:,.1f} MB"
