"""A sketch of the Gramian: of each layer's weight gradient, a few random mixtures of its rows."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.pull import Cotangents, compact, pull
from gradwright.engine.plan.layers import Layer, layers_of
from gradwright.engine.plan.stages import Plan
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.routes.rows import Rows


class Sketch(Approximation):
    """The Gramian of random projections of the gradients, which on average is the exact one.

    The gradient of a weight [out, in] is gᵀ x, for the gradient g [position, out] of what the
    layer returned and what it read. In its place S gᵀ x is made, with S [size, out] of random
    signs / √size, the same for all tasks: the inner products are right on average, with a
    standard deviation that falls as 1 / √size (Johnson and Lindenstrauss 1984; with signs
    Achlioptas, PODS 2001). Of d output channels, a step costs (3 + K (1 + size / d)) / 3 plain
    ones, where the exact one costs (3 + 2 K) / 3. Linear layers and convolutions that use a
    weight alone are sketched, if they have more than `size` channels; all else is exact.

    Keeps size × in numbers per layer and task, and what the layers of one task's backward hand on.

    Args:
        size: Random mixtures per layer; 16 gave errors of the Gramian of 3 to 10 %, 64 of 2 to 5 %
            (benchmarks/approximate.py).
        generator: Where the signs are drawn from; by default torch's global generator.
        measure_error: Also make the exact Gramian, at its full cost, and say how far off this is.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.weighting import MGDA
        >>> trunk, heads = torch.nn.Linear(4, 64), [torch.nn.Linear(64, 1) for _ in range(2)]
        >>> features = trunk(torch.ones(8, 4))
        >>> losses = [head(features).square().mean() for head in heads]
        >>> route = Sketch(16, torch.Generator().manual_seed(0))
        >>> gw.backward(losses, weighting=MGDA(), route=route).route.name
        'sketch'
    """

    name = "sketch"

    def __init__(
        self,
        size: int = 16,
        generator: torch.Generator | None = None,
        *,
        measure_error: bool = False,
    ) -> None:
        if size < 1:
            raise ValueError(f"`size` needs to be 1 or more: got {size}.")
        self.size = size
        self.generator = generator
        self.measure_error = measure_error

    def edges(self, plan: Plan, meeting: Sequence[GradientEdge]) -> list[GradientEdge]:
        """See `Approximation.edges`."""
        return list(meeting)

    def gramian(self, plan: Plan, edges: Sequence[GradientEdge], names: Sequence[str]) -> Tensor:
        """See `Approximation.gramian`."""
        signs = {layer: self._signs(layer) for layer in self._layers(plan, edges)}
        sketched = {layer.leaf for layer in signs}
        exact = [edge for edge in edges if edge not in sketched]
        rows: Rows = {edge: [None] * plan.n_tasks for edge in edges}
        for task, start in enumerate(plan.starts):
            for edge, row in self._rows_of(start, signs, exact):
                rows[edge][task] = row
        return gramian_of(rows.values(), plan.n_tasks)

    @property
    def what(self) -> str:
        """See `Approximation.what`."""
        return f"a Gramian of {self.size} random mixtures per layer"

    def _rows_of(
        self, start: Cotangents, signs: Mapping[Layer, Tensor], exact: Sequence[GradientEdge]
    ) -> Iterator[tuple[GradientEdge, Tensor]]:
        """The rows of one task, sketched or exact."""
        gradients = pull(start, [*(layer.output for layer in signs), *exact], keep=True)
        for edge, gradient in zip(exact, gradients[len(signs) :], strict=True):
            if gradient is not None:
                yield edge, compact(gradient)
        for layer, gradient in zip(signs, gradients[: len(signs)], strict=True):
            if gradient is not None:
                yield layer.leaf, _projected(layer, gradient, signs[layer])

    def _layers(self, plan: Plan, meeting: Sequence[GradientEdge]) -> list[Layer]:
        """Those with more output channels than `size`, whose weight is shared and has no hook."""
        wanted, leaves = set(meeting), plan.leaves
        return [
            layer
            for edge, layer in layers_of(plan.reach).items()
            if edge in wanted and not leaves[edge]._backward_hooks and _channels(layer) > self.size
        ]

    def _signs(self, layer: Layer) -> Tensor:
        """S [channel, size]."""
        bits = torch.randint(2, (_channels(layer), self.size), generator=self.generator)
        signs = 2.0 * bits - 1
        scaled: Tensor = signs / self.size**0.5
        return scaled


def _channels(layer: Layer) -> int:
    return int(layer.node._input_metadata[0].shape[1])


def _projected(layer: Layer, gradient: Tensor, signs: Tensor) -> Tensor:
    """S times the gradient of the layer's weight, from that of its output: [size * in]."""
    mixtures = signs.T.to(gradient)
    if gradient.dim() == 2:
        mixed = gradient @ mixtures.T  # [position, size]
    else:  # [batch, size, *position]
        mixed = (mixtures @ gradient.flatten(2)).unflatten(2, gradient.shape[2:])
    return torch.cat([part.flatten() for part in layer.rows([mixed])])
