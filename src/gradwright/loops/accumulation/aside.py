"""Gradients that were there before a window: put aside while it is open, and added back."""

from collections.abc import Sequence

import torch
from torch import Tensor


class Aside:
    """The `.grad` of parameters before a window; they have none from here on.

    Args:
        parameters: Whose `.grad` is put aside.
        copied: Whether to keep copies, where the next backward may write into the same memory
            (`DistributedDataParallel(gradient_as_bucket_view=True)`).
    """

    def __init__(self, parameters: Sequence[Tensor], *, copied: bool = False) -> None:
        self._parameters = parameters
        self._copied = copied
        self._before = [_taken(parameter.grad, copied=copied) for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None

    def put_back(self) -> None:
        """Make each `.grad` what it was before."""
        for parameter, before in zip(self._parameters, self._before, strict=True):
            parameter.grad = before

    @torch.no_grad()
    def add_back(self) -> None:
        """Add what was there to the new gradients, in its own memory as torch does."""
        for parameter, before in zip(self._parameters, self._before, strict=True):
            if before is None:
                continue
            new = parameter.grad
            if new is None:
                parameter.grad = before
            elif self._copied:
                new += before
            else:
                parameter.grad = _added(before, new)


@torch.no_grad()
def divide(parameters: Sequence[Tensor], divisor: float) -> None:
    """Divide every `.grad` by `divisor`, in place."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    dense = [gradient for gradient in gradients if not gradient.is_sparse]
    if dense:
        torch._foreach_div_(dense, divisor)
    for gradient in gradients:
        if gradient.is_sparse:
            gradient.div_(divisor)


def _taken(gradient: Tensor | None, *, copied: bool) -> Tensor | None:
    return gradient.clone() if copied and gradient is not None else gradient


def _added(before: Tensor, new: Tensor) -> Tensor:
    if before.is_sparse and not new.is_sparse:
        return new + before  # torch adds them in this order only
    before += new
    return before
