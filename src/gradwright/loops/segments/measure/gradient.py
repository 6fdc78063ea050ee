"""The gradient that the segments of a window add up to, without writing into any `.grad`."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from gradwright.graph.walk import leaves
from gradwright.loops.nested import tensors_of
from gradwright.loops.segments.run import Run
from gradwright.loops.segments.segment import Segment

Data = TypeVar("Data")

Gradient = dict[Tensor, Tensor]
"""By the parameter."""


class StateSeen(Generic[Data]):
    """A `run` that notes which leaves the state before the segment came from."""

    def __init__(self, run: Run[Data]) -> None:
        self._run = run
        self.leaves: list[Tensor] = []

    def __call__(self, data: Data, state: Any) -> tuple[Any, ...]:
        """What `run` returns."""
        self.leaves = list(_leaves_of(tensors_of(state, "state").values()))
        return self._run(data, state)


def sent_back(segment: Segment[Any, Any], seen: StateSeen[Any]) -> tuple[Gradient, Gradient]:
    """The gradients of one segment's loss for the parameters, and for the state before it.

    The state's leaves get theirs as `.grad`, which is where exact segments look for it.
    """
    apart = set(seen.leaves) if segment.index else set()
    root = segment.loss.grad_fn
    reached = [segment.loss] if root is None else leaves([root])
    found = torch.autograd.grad(segment.loss, reached, allow_unused=True)
    parameters, state = Gradient(), Gradient()
    for leaf, gradient in zip(reached, found, strict=True):
        if leaf in apart:
            leaf.grad = gradient
        if gradient is not None:
            (state if leaf in apart else parameters)[leaf] = gradient.detach()
    return parameters, state


def add(total: Gradient, gradient: Gradient) -> None:
    """Add one to the other, parameter by parameter."""
    for parameter, part in gradient.items():
        total[parameter] = total[parameter] + part if parameter in total else part


def inner(one: Gradient, other: Gradient) -> float:
    """The inner product, over the parameters that both have."""
    both = [(_dense(part), _dense(other[leaf])) for leaf, part in one.items() if leaf in other]
    products = [float((mine.conj() * theirs).sum().real) for mine, theirs in both]
    return math.fsum(products)  # whatever their order: that of leaves in a graph is none


def norm(gradient: Gradient) -> float:
    """Over all parameters together."""
    return math.sqrt(inner(gradient, gradient))


def difference(one: Gradient, other: Gradient) -> Gradient:
    """One minus the other; what a gradient does not have is 0."""
    found = dict(one)
    add(found, {parameter: -part for parameter, part in other.items()})
    return found


def only(gradient: Gradient, parameters: Iterable[Tensor] | None) -> Gradient:
    """The part of it that belongs to these parameters; None: all."""
    if parameters is None:
        return gradient
    wanted = set(parameters)
    return {leaf: part for leaf, part in gradient.items() if leaf in wanted}


def _dense(tensor: Tensor) -> Tensor:
    whole = tensor.to_dense() if tensor.is_sparse else tensor
    return whole.to(torch.complex128 if whole.is_complex() else torch.float64)


def _leaves_of(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    for tensor in tensors:
        if tensor.grad_fn is not None:
            yield from leaves([tensor.grad_fn])
        elif tensor.requires_grad:
            yield tensor
