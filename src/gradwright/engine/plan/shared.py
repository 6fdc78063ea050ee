"""Which parameters the tasks share."""

from collections.abc import Iterable, Mapping

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.errors import SharedError
from gradwright.engine.plan.reach import count
from gradwright.engine.plan.stages import Plan

Shared = Iterable[Tensor] | None
"""The parameters where the tasks meet; None for what the graph says."""

Grouped = Mapping[str, Iterable[Tensor]]
"""The parameters of each group, by its name."""


def shared_leaves(plan: Plan, given: Shared) -> list[GradientEdge]:
    """The leaves where the tasks meet: those given, else those that several losses reach.

    Where only one loss is present, all that it reaches counts as shared.

    Raises:
        SharedError: one that is given is no leaf or no loss reaches it; or nothing is shared.
    """
    if given is not None:
        return _given(plan, list(given))
    found = [
        edge
        for stage in plan.stages
        for edge in stage.leaves
        if plan.n_tasks == 1 or count(stage.tasks) > 1
    ]
    if not found:
        raise SharedError(
            f"the {plan.n_tasks} losses share no parameter: there is no conflict to weigh. Leave "
            "`weighting` out; and see whether a `detach` or `no_grad` cuts the shared part off."
        )
    return found


def _given(plan: Plan, given: list[Tensor]) -> list[GradientEdge]:
    edges = {id(leaf): edge for edge, leaf in plan.leaves.items()}
    wanted = [tensor for tensor in given if tensor.requires_grad]
    for position, tensor in enumerate(given):
        if not tensor.requires_grad:
            continue  # frozen: `encoder.parameters()` is a fair way to say it
        if not tensor.is_leaf:
            raise SharedError(
                f"`shared` has at position {position} a tensor of shape {list(tensor.shape)} that "
                "was computed: it takes parameters (leaves)."
            )
        if id(tensor) not in edges:
            raise SharedError(
                f"`shared` has at position {position} a parameter of shape {list(tensor.shape)} "
                "that no loss reaches."
            )
    if not wanted:
        raise SharedError("`shared` holds no tensor that requires a gradient.")
    return [edges[id(tensor)] for tensor in {id(tensor): tensor for tensor in wanted}.values()]
