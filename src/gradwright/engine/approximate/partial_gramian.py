"""The Gramian at some tensors alone: the last shared block, or the features."""

from collections.abc import Iterable, Sequence

from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.pull import compact, edge_of, pull
from gradwright.engine.errors import SharedError
from gradwright.engine.plan.layers import Layer, layers_among
from gradwright.engine.plan.stages import Plan
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.routes.layer_products import add_layer_products


class LastBlock(Approximation):
    """The Gramian of some of the shared parameters: those of the last block before the heads.

    Each task's backward ends there. Costs (heads + last block) once per task, then one backward.
    As in GradNorm (Chen et al., ICML 2018), which reads the last shared layer alone.

    Args:
        parameters: Some of the shared parameters.
        measure_error: Also make the exact Gramian, at its full cost, and say how far off this is.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.weighting import PCGrad
        >>> first, last = torch.nn.Linear(4, 3), torch.nn.Linear(3, 3)
        >>> heads = [torch.nn.Linear(3, 1) for _ in range(2)]
        >>> features = last(first(torch.ones(8, 4)))
        >>> losses = [head(features).square().mean() for head in heads]
        >>> route = LastBlock(last.parameters())
        >>> gw.backward(losses, weighting=PCGrad(), route=route).route.exact
        False
    """

    name = "last block"

    def __init__(self, parameters: Iterable[Tensor], *, measure_error: bool = False) -> None:
        self.parameters = list(parameters)
        self.measure_error = measure_error

    def edges(self, plan: Plan, meeting: Sequence[GradientEdge]) -> list[GradientEdge]:
        """See `Approximation.edges`."""
        edges = [edge_of(tensor) for tensor in self.parameters if tensor.requires_grad]
        for position, edge in enumerate(edges):
            if edge not in meeting:
                raise SharedError(
                    f"`LastBlock` has at position {position} a tensor that is no shared parameter "
                    "of these losses. For tensors that were computed there is `Features`."
                )
        return edges

    def gramian(self, plan: Plan, edges: Sequence[GradientEdge], names: Sequence[str]) -> Tensor:
        """See `Approximation.gramian`."""
        layers = self._layers(plan, edges)
        outputs = [layer.output for layer in layers]
        weights = {layer.leaf for layer in layers}
        others = [edge for edge in edges if edge not in weights]
        arrived = _arrived(plan, [*outputs, *others], names, "LastBlock")
        total = gramian_of(arrived[len(outputs) :], plan.n_tasks)
        for layer, gradients in zip(layers, arrived[: len(outputs)], strict=True):
            add_layer_products(total, layer, gradients)
        return total

    @property
    def what(self) -> str:
        """See `Approximation.what`."""
        return f"the Gramian of {len(self.parameters)} parameters alone"

    def _layers(self, plan: Plan, edges: Sequence[GradientEdge]) -> list[Layer]:
        """Those whose outputs are smaller to keep than the gradients of their weights."""
        wanted, leaves = set(edges), plan.leaves
        found = layers_among(plan.reach).items()
        return [one for e, one in found if e in wanted and not leaves[e]._backward_hooks]


class Features(Approximation):
    """The Gramian of the gradients at the features, in place of those of the parameters.

    What the heads read, [batch, …]: each task's backward ends where the trunk begins, so a step
    costs one backward and the heads once more. Keeps one gradient of the features per task.

    As Sener and Koltun's MGDA-UB (Multi-Task Learning as Multi-Objective Optimization, NeurIPS
    2018, section 3.3, https://arxiv.org/abs/1810.04650) and LibMTL's `rep_grad=True`; for any
    method that reads a Gramian, and the trunk is always trained. The gradients there have another
    length than those of the parameters: weights that depend on it (NashMTL's) are off by a factor.

    Args:
        tensors: What the trunk returned; all losses need to reach some of them.
        measure_error: Also make the exact Gramian, at its full cost, and say how far off this is.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.weighting import MGDA
        >>> trunk, heads = torch.nn.Linear(4, 3), [torch.nn.Linear(3, 1) for _ in range(2)]
        >>> features = trunk(torch.ones(8, 4))
        >>> losses = [head(features).square().mean() for head in heads]
        >>> step = gw.backward(losses, weighting=MGDA(), route=Features([features]))
        >>> step.route.name, trunk.weight.grad is not None
        ('features', True)
    """

    name = "features"

    def __init__(self, tensors: Iterable[Tensor], *, measure_error: bool = False) -> None:
        self.tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        self.measure_error = measure_error

    def edges(self, plan: Plan, meeting: Sequence[GradientEdge]) -> list[GradientEdge]:
        """See `Approximation.edges`."""
        for position, tensor in enumerate(self.tensors):
            if not tensor.requires_grad or edge_of(tensor).node not in plan.reach:
                raise SharedError(
                    f"`Features` has at position {position} a tensor of shape "
                    f"{list(tensor.shape)} that no loss reaches. Give what the trunk returned, "
                    "as it was given to the heads."
                )
        return [edge_of(tensor) for tensor in self.tensors]

    def gramian(self, plan: Plan, edges: Sequence[GradientEdge], names: Sequence[str]) -> Tensor:
        """See `Approximation.gramian`."""
        return gramian_of(_arrived(plan, edges, names, "Features"), plan.n_tasks)

    @property
    def what(self) -> str:
        """See `Approximation.what`."""
        return f"the Gramian at {len(self.tensors)} tensors"


def _arrived(
    plan: Plan, edges: Sequence[GradientEdge], names: Sequence[str], kind: str
) -> list[list[Tensor | None]]:
    """The gradients of all tasks at these edges, [edge][task]."""
    if not edges:
        raise SharedError(f"`{kind}` holds no tensor that requires a gradient.")
    per_task = [pull(start, edges, keep=True) for start in plan.starts]
    for name, gradients in zip(names, per_task, strict=True):
        if all(gradient is None for gradient in gradients):
            raise SharedError(f"loss {name!r} reaches none of the tensors of `{kind}`.")
    return [
        [None if gradient is None else compact(gradient) for gradient in of_one]
        for of_one in zip(*per_task, strict=True)
    ]
