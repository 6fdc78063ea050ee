"""Small tensors that do not hold large memory."""

import torch
from torch import Tensor


def compact(tensor: Tensor) -> Tensor:
    """The tensor, or a copy of it where it is at most half of the memory that it keeps alive.

    A segment that is a view pins the whole sequence for as long as autograd keeps it; a state
    that is the last time of an output pins the output.
    """
    if tensor.layout is not torch.strided or tensor.is_meta:
        return tensor
    own = tensor.numel() * tensor.element_size()
    return tensor.clone() if 2 * own <= tensor.untyped_storage().nbytes() else tensor
