"""Whether a pass may be cut into several calls at the borders between stages.

A call ends at a border, the next one starts there. Two things forbid it. A hook on the tensor at
the border would act twice. And where one border lies behind another (a head that reads two levels
of a trunk, a weight used by trunk and head), a call that ends at both runs what is between them.
"""

from collections.abc import Iterable

import torch
from torch.autograd.graph import GradientEdge, Node
from torch.utils._python_dispatch import TorchDispatchMode

from gradwright.engine.plan.stages import Plan
from gradwright.graph import edges_of


def can_cut(plan: Plan) -> bool:
    """Whether every task may run leg by leg."""
    ends = {frozenset(edge.node for edge in leg.exits) for leg in plan.legs()}
    return not any(one_behind_another(nodes) for nodes in ends) and all(
        is_without_hook(edge) for edge in plan.borders
    )


def one_behind_another(nodes: Iterable[Node]) -> bool:
    """Whether a gradient that leaves one of the nodes can arrive at another."""
    nodes = set(nodes)
    if len(nodes) < 2:
        return False
    seen: set[Node] = set()
    todo = [child for node in nodes for child in edges_of(node)]
    while todo:
        node = todo.pop()
        if node in nodes:
            return True
        if node not in seen:
            seen.add(node)
            todo += edges_of(node)
    return False


def is_without_hook(edge: GradientEdge) -> bool:
    """Whether a gradient that arrives at `edge` is still the same when it leaves.

    Python cannot see the hooks of a node, so a gradient of zeros is sent to the edge and back. A
    hook that only looks at it (and might act on another one) is stopped where it does.
    """
    described = edge.node._input_metadata[edge.output_nr]
    if described.is_nested_tensor or described.is_cpp_nested_tensor:
        return False
    zero = torch.zeros((), dtype=described.dtype, device=described.device)
    probe = zero.expand(described.shape)
    version = probe._version
    try:
        with _Untouched():  # type: ignore[no-untyped-call]
            (back,) = torch.autograd.grad([edge], [edge], [probe])
    except Exception:  # `_Looked`, or the hook's own
        return False
    return back is probe and probe._version == version


class _Looked(Exception):
    """A hook has used the probe."""


class _Untouched(TorchDispatchMode):
    """Within the block no operation may run."""

    def __torch_dispatch__(self, *arguments: object) -> object:  # any operation
        raise _Looked
