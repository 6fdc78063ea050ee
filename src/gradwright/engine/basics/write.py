"""Adding to `.grad`, as torch's own backward does."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge


def add_all(
    leaves: Mapping[GradientEdge, Tensor], gradients: Iterable[tuple[GradientEdge, Tensor]]
) -> None:
    """Add to the leaves' `.grad`; nothing is written unless all gradients could be computed."""
    for edge, gradient in list(gradients):
        add_to_grad(leaves[edge], gradient)


@torch.no_grad()
def add_to_grad(leaf: Tensor, gradient: Tensor) -> None:
    """`leaf.grad += gradient`, in place where there is one, then the hooks that wait for it.

    The memory of `gradient` may become that of `leaf.grad`.
    """
    before = leaf.grad
    if before is None:
        leaf.grad = _laid_out_like(leaf, gradient)
    elif before.is_sparse and not gradient.is_sparse:
        leaf.grad = gradient + before
    else:
        before += gradient
    for hook in _hooks(leaf):
        hook(leaf)


def _laid_out_like(leaf: Tensor, gradient: Tensor) -> Tensor:
    """Optimizers step fastest where a gradient has its parameter's strides (channels_last)."""
    if gradient.is_sparse or gradient.stride() == leaf.stride():
        return gradient
    return torch.empty_like(leaf).copy_(gradient)


def _hooks(leaf: Tensor) -> Iterable:  # type: ignore[type-arg]
    hooks = getattr(leaf, "_post_accumulate_grad_hooks", None)
    return list(hooks.values()) if hooks else []
