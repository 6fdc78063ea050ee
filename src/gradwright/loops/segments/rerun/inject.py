"""A loss whose backward also sends the gradient of the state that later segments asked for."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gradwright.loops.errors import SegmentError
from gradwright.loops.nested import tensors_of


class Carried:
    """The gradients of the state after a segment, until its backward takes them along."""

    def __init__(self, gradients: dict[str, Tensor]) -> None:
        self.gradients = gradients
        self.taken = False


def inject(loss: Tensor, state: object, carried: Carried) -> Tensor:
    """The same loss; its backward also starts from `state`, with the gradients carried there.

    The gradients are those of everything behind the segment, in the same units as the loss's own
    backward: a factor on the loss (a loss scale) is in them already.
    """
    tensors = tensors_of(state, "state")
    reached = [name for name in carried.gradients if tensors[name].requires_grad]
    gradients = [carried.gradients[name] for name in reached]
    out: Tensor = _Inject.apply(loss, carried, gradients, *[tensors[name] for name in reached])  # type: ignore[no-untyped-call]
    return out


class _Inject(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, loss: Tensor, carried: Carried, gradients: list[Tensor], *state: Tensor
    ) -> Tensor:
        ctx.carried, ctx.gradients = carried, gradients
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.carried.taken:
            raise SegmentError(
                "a segment's loss was differentiated twice: its backward carries the gradient of "
                "the segments after it, once. Call one backward on `segment.loss`, and "
                "differentiate `segment.output` for anything else."
            )
        ctx.carried.taken = True
        return (grad, None, None, *ctx.gradients)
