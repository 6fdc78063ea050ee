"""One call into torch's autograd engine: from cotangents at some edges to gradients at others."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge

Cotangents = dict[GradientEdge, Tensor]
"""What arrives at edges of the graph on the way back: the gradient of one loss there."""


def edge_of(tensor: Tensor) -> GradientEdge:
    """The place in the graph where `tensor` comes out."""
    edge = get_gradient_edge(tensor)
    return GradientEdge(edge.node, edge.output_nr)  # without its token: equal edges compare equal


def pull(
    cotangents: Cotangents, inputs: Sequence[GradientEdge], *, keep: bool
) -> list[Tensor | None]:
    """The gradients at `inputs`; None where nothing arrives.

    `keep` keeps what the walked nodes saved, for another call.
    """
    if not cotangents or not inputs:
        return [None] * len(inputs)
    return list(
        torch.autograd.grad(
            list(cotangents),
            list(inputs),
            list(cotangents.values()),
            retain_graph=keep,
            allow_unused=True,
        )
    )


def compact(gradient: Tensor) -> Tensor:
    """The same values in memory of their own, if they keep more than twice as much alive.

    The backward of `stack` or `chunk` returns views of one large gradient.
    """
    if gradient.layout != torch.strided:
        return gradient
    alive = gradient.untyped_storage().nbytes()
    return gradient.clone() if alive > 2 * gradient.nbytes else gradient


def add_to(cotangents: Cotangents, edge: GradientEdge, value: Tensor) -> None:
    """Add `value` to what has arrived at `edge`."""
    before = cotangents.get(edge)
    cotangents[edge] = value if before is None else before + value


def zeros_at(starts: Iterable[Cotangents]) -> Cotangents:
    """Nothing, to send through a graph that shall be freed: hooks that add up stay right."""
    return {edge: torch.zeros_like(value) for start in starts for edge, value in start.items()}
