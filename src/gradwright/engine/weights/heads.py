"""What the gradients of heads are multiplied by: a rule, or whose rule to follow."""

from typing import Literal, get_args

import torch
from torch import Tensor

from gradwright.engine.errors import LossError
from gradwright.engine.losses import TaskLosses
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GroupWeighting,
    HeadBatches,
    HeadRule,
    JacobianWeighting,
    LossWeighting,
    Weighting,
)

_Preset = Literal["paper", "libmtl", "torchjd"]
Heads = HeadRule | _Preset
"""A rule for the heads, or whose rule to follow."""


def check_heads(heads: Heads, weighting: Weighting | None) -> None:
    """Refuse an unknown rule, and one that a method which weights whole losses cannot follow."""
    if heads not in (*get_args(HeadRule), *get_args(_Preset)):
        raise ValueError(
            f"`heads` is {heads!r}: it must be 'weighted', 'unweighted', 'mean' or 'log', or the "
            "preset 'paper', 'libmtl' or 'torchjd'."
        )
    if isinstance(weighting, JacobianWeighting) and not _suits(weighting, heads):
        raise ValueError(
            f"`heads` is {heads!r}, the rule 'weighted', but {weighting._get_name()} gives no "
            "weights: 'unweighted', 'mean' or 'log'."
        )
    if isinstance(weighting, GroupWeighting) and head_rule(heads, weighting) == "weighted":
        raise ValueError(
            f"`heads` is {heads!r}, the rule 'weighted', but {weighting._get_name()} has "
            "weights per group of parameters, none for the heads: 'unweighted', 'mean' or 'log'."
        )
    if isinstance(weighting, LossWeighting) and head_rule(heads, weighting) != "weighted":
        raise ValueError(
            f"`heads` is {heads!r}, but {weighting._get_name()} weights whole losses, their "
            "heads included: leave `heads` out."
        )


def head_factors(
    heads: Heads, weighting: Weighting, weights: Tensor | None, read: TaskLosses
) -> Tensor:
    """What each task's head is multiplied by: [task].

    Raises:
        LossError: the rule is "log", and a loss is not above 0.
    """
    n = len(read.present)
    match head_rule(heads, weighting):
        case "weighted":
            assert weights is not None  # see `check_heads`
            return weights
        case "mean":
            return torch.full((n,), 1 / n, dtype=torch.float64)
        case "log":
            return 1 / _positive(read)
        case _:
            return torch.ones(n, dtype=torch.float64)


def head_rule(heads: Heads, weighting: Weighting) -> HeadRule:
    """The rule itself, where `heads` says whose rule to follow."""
    match heads:
        case "paper":
            return weighting.paper_heads
        case "libmtl":
            return weighting.libmtl_heads
        case "torchjd":
            return weighting.torchjd_heads
        case _:
            return heads


def head_batches(heads: Heads, weighting: CrossGramianWeighting) -> HeadBatches:
    """Which batches' gradients the heads get, of a method that reads several."""
    return weighting.libmtl_head_batches if heads == "libmtl" else "trained"


def _suits(weighting: JacobianWeighting, heads: Heads) -> bool:
    weighs = type(weighting).task_weights is not JacobianWeighting.task_weights
    return weighs or head_rule(heads, weighting) != "weighted"


def _positive(read: TaskLosses) -> Tensor:
    values = read.values.to("cpu", torch.float64)
    for task in (~(values > 0)).nonzero().flatten().tolist():
        raise LossError(
            f"`heads` is 'log', so the losses must be above 0, but loss "
            f"{read.names[read.present[task]]!r} is {values[task].item():g}. Add a constant to it, "
            "or give another rule for `heads`."
        )
    return values
