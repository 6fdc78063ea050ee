"""Weights whose gradient is a product of what a layer read and the gradient of what it returned.

For a linear layer or a convolution with few positions and large weights, the gradients of its
output are smaller than those of its weight. They are kept for all tasks in place of them, and the
rows of the Jacobian made a few output channels at a time, all tasks at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.plan.frontier import size_of
from gradwright.graph import is_accumulator, saved_state

_CHUNK = 2**19  # entries of the rows made at once: 2 MB of float32


@dataclass(frozen=True, slots=True)
class Layer(ABC):
    """A node with one weight that nothing else uses."""

    node: Node
    leaf: GradientEdge  # of the weight

    @property
    def output(self) -> GradientEdge:
        """Where the gradient of what the layer returned arrives."""
        return GradientEdge(self.node, 0)

    @abstractmethod
    def rows(self, gradients: Sequence[Tensor]) -> Iterator[Tensor]:
        """The weight's gradients of these tasks [task, entry], a part of the entries at a time.

        `gradients` has that of the layer's output for each task.
        """


class Linear(Layer):
    """y = x Wᵀ: the gradient of W is gᵀ x."""

    def rows(self, gradients: Sequence[Tensor]) -> Iterator[Tensor]:
        """See `Layer.rows`."""
        name = "_saved_mat1" if self.node.name() == "AddmmBackward0" else "_saved_self"
        read: Tensor = getattr(self.node, name)
        step = _channels_at_once(len(gradients), read.shape[1])
        for start in range(0, gradients[0].shape[1], step):
            parts = [g[:, start : start + step].T @ read for g in gradients]
            yield torch.stack(parts).flatten(1)


class Convolution(Layer):
    """A convolution without groups: the tasks' gradients are so many more output channels."""

    def rows(self, gradients: Sequence[Tensor]) -> Iterator[Tensor]:
        """See `Layer.rows`."""
        weight: Tensor = self.node._saved_weight  # type: ignore[attr-defined]
        step = _channels_at_once(len(gradients), weight[0].numel())
        for start in range(0, gradients[0].shape[1], step):
            yield self._rows([g[:, start : start + step] for g in gradients], weight)

    def _rows(self, gradients: Sequence[Tensor], weight: Tensor) -> Tensor:
        node = self.node
        together = torch.cat(list(gradients), dim=1)
        shape = (together.shape[1], *weight.shape[1:])
        _, rows, _ = torch.ops.aten.convolution_backward(
            together,
            node._saved_input,  # type: ignore[attr-defined]
            weight.new_empty(1).expand(shape),
            None,
            node._saved_stride,  # type: ignore[attr-defined]
            node._saved_padding,  # type: ignore[attr-defined]
            node._saved_dilation,  # type: ignore[attr-defined]
            False,
            node._saved_output_padding,  # type: ignore[attr-defined]
            1,
            [False, True, False],
        )
        return rows.reshape(len(gradients), -1)  # type: ignore[no-any-return]


def layers_among(nodes: Iterable[Node]) -> dict[GradientEdge, Layer]:
    """The layers whose output has fewer entries than their weight, by the weight's edge."""
    return {edge: layer for edge, layer in layers_of(nodes).items() if _pays(layer)}


def layers_of(nodes: Iterable[Node]) -> dict[GradientEdge, Layer]:
    """All linear layers and convolutions that use their weight alone, by the weight's edge."""
    nodes = list(nodes)
    users = _users_of_weights(nodes)
    found = (_layer(node, users) for node in nodes)
    return {layer.leaf: layer for layer in found if layer is not None}


def _layer(node: Node, users: dict[Node, int]) -> Layer | None:
    match node.name():
        case "AddmmBackward0" | "MmBackward0":
            return _linear(node, users)
        case "ConvolutionBackward0":
            return _convolution(node, users)
    return None


def _linear(node: Node, users: dict[Node, int]) -> Layer | None:
    transposed = node.next_functions[-1][0]
    if transposed is None or transposed.name() != "TBackward0" or users[transposed] > 1:
        return None
    if node.name() == "AddmmBackward0" and node._saved_alpha != 1:  # type: ignore[attr-defined]
        return None
    return _if_sole_user(Linear, node, transposed.next_functions[0][0], users)


def _convolution(node: Node, users: dict[Node, int]) -> Layer | None:
    if node._saved_transposed or node._saved_groups != 1:  # type: ignore[attr-defined]
        return None
    return _if_sole_user(Convolution, node, node.next_functions[1][0], users)


def _if_sole_user(
    kind: type[Layer], node: Node, weight: Node | None, users: dict[Node, int]
) -> Layer | None:
    if weight is None or not is_accumulator(weight) or users[weight] > 1:
        return None
    if saved_state(node).state != "live":  # or hooks would run: checkpointing, offloading
        return None
    return kind(node, GradientEdge(weight, 0))


def _users_of_weights(nodes: Iterable[Node]) -> dict[Node, int]:
    users: dict[Node, int] = {}
    for node in nodes:
        for child, _ in node.next_functions:
            if child is not None:
                users[child] = users.get(child, 0) + 1
    return users


def _pays(layer: Layer) -> bool:
    return size_of(layer.output) < size_of(layer.leaf)


def _channels_at_once(n_tasks: int, fan_in: int) -> int:
    most = max(1, _CHUNK // (n_tasks * fan_in))
    even = 16 // gcd(16, n_tasks)  # convolutions are 15 % faster where tasks × channels is 16 n
    return most // even * even or most
