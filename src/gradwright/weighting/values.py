"""Losses and state per task as the methods read them: in float64, checked against each other."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Weighting


def wide(values: Tensor) -> Tensor:
    """`values` in float64, so that squares and exponents of extreme losses stay finite."""
    # MPS has no float64
    return values.float() if values.device.type == "mps" else values.double()


def state_of(weighting: Weighting, state: Tensor, values: Tensor) -> Tensor:
    """The entries of `state` [task] for the tasks whose `values` [task, ...] are given, wide."""
    entries = weighting.of_present(state)
    if len(entries) != len(values):
        raise ValueError(
            f"`{weighting._get_name()}` speaks of {len(entries)} tasks, but got {len(values)} "
            "losses. Make it for as many tasks as there are losses; where a batch has no labels "
            "for some tasks, say which are there: `with weighting.only(tasks):`."
        )
    return wide(entries.to(values.device))


def positive(weighting: Weighting, losses: Tensor, above: Tensor | float = 0.0) -> Tensor:
    """`losses` [task] less the bounds `above`, wide; each has to be over its bound."""
    margins = wide(losses) - above
    (at_fault,) = torch.where(~(margins > 0))
    if len(at_fault):
        raise ValueError(_not_positive(weighting, losses, above, int(at_fault[0])))
    return margins


def _not_positive(weighting: Weighting, losses: Tensor, above: Tensor | float, at: int) -> str:
    bound = above[at].item() if isinstance(above, Tensor) else above
    task = at if weighting._present is None else int(weighting._present[at])
    return (
        f"`{weighting._get_name()}` takes logarithms, so it needs losses above {bound:g}: "
        f"the loss of task {task} is {losses[at].item():g}. Add a constant to that loss, "
        "or use a method without logarithms."
    )
