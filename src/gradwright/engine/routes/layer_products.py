"""The Gramian of a layer's weight from the gradients of what the layer returned."""

from collections.abc import Sequence

from torch import Tensor

from gradwright.engine.basics.inner_products import add_products_of
from gradwright.engine.plan.layers import Layer


def add_layer_products(total: Tensor, layer: Layer, outputs: Sequence[Tensor | None]) -> None:
    """Add the inner products of the weight's rows to `total` [task, task], a part at a time.

    `outputs` has the gradient of the layer's output for each task.
    """
    present = [task for task, output in enumerate(outputs) if output is not None]
    for part in layer.rows([output for output in outputs if output is not None]):
        add_products_of(total, present, part)
