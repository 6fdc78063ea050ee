"""The gradients of a weighted sum of the losses: one backward where the weights are known."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.pull import Cotangents, add_to, pull
from gradwright.engine.plan.stages import Plan


def gradients_of_known(
    plan: Plan, meeting: Collection[GradientEdge], weights: Tensor, heads: Tensor, *, keep: bool
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """The gradient of each leaf: Σ weight × gradient for shared ones, Σ head × gradient for others.

    What is not shared has a pass of its own where its factors differ.
    """
    inside = [edge for edge in plan.leaves if edge in meeting]
    others = [edge for edge in plan.leaves if edge not in meeting]
    together = weighted_starts(plan.starts, weights)
    if not others or torch.equal(weights, heads):
        yield from _arrived([*inside, *others], pull(together, [*inside, *others], keep=keep))
        return
    apart = weighted_starts(plan.starts, heads)
    yield from _arrived(others, pull(apart, others, keep=True))
    wanted = inside if keep else [*inside, *others]  # all of them, or the heads would not be freed
    yield from _arrived(inside, pull(together, wanted, keep=keep))


def weighted_starts(starts: Iterable[Cotangents], weights: Tensor) -> Cotangents:
    """What arrives at the starts of all tasks together, each task times its weight [task]."""
    together: Cotangents = {}
    for start, weight in zip(starts, weights.tolist(), strict=True):
        for edge, value in start.items():
            add_to(together, edge, value * weight)
    return together


def _arrived(
    edges: Sequence[GradientEdge], gradients: Sequence[Tensor | None]
) -> Iterator[tuple[GradientEdge, Tensor]]:
    """The first of the gradients with their edges, where there are any."""
    for edge, gradient in zip(edges, gradients, strict=False):
        if gradient is not None:
            yield edge, gradient
