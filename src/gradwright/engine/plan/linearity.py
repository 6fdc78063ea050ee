"""Whether a backward is linear in what it is given: hooks may clip or normalise gradients."""

from collections.abc import Collection, Iterable

from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

from gradwright.engine.basics.inner_products import squared_length
from gradwright.engine.plan.borders import is_without_hook
from gradwright.graph import is_accumulator


def has_hooks(nodes: Collection[Node]) -> bool:
    """Whether a tensor in this part of the graph has a hook.

    Hooks that were put on a node itself cannot be seen from Python.
    """
    edges = {
        GradientEdge(child, number)
        for node in nodes
        for child, number in node.next_functions
        if child is not None and not is_accumulator(child)
    }
    return not all(is_without_hook(edge) for edge in edges)


def off_by(gradients: Iterable[Tensor], weights: Tensor, gramian: Tensor) -> float:
    """How far the length of a combined gradient Jᵀw is from what the Gramian says, wᵀGw.

    As a fraction of Σ (w_k |g_k|)².
    """
    scale = float(weights.square() @ gramian.diagonal())
    off = abs(squared_length(gradients) - float(weights @ gramian @ weights))
    return off / scale if scale else off
