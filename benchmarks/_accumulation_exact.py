"""The gradient of a whole window in one piece, and how far another one is from it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks._accumulation_models import Example, LanguageModel, collate


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a gradient is from the exact one, all parameters taken as one vector."""

    error: float  # ‖gradient - exact‖ / ‖exact‖
    ratio: float  # ‖gradient‖ / ‖exact‖
    cosine: float


def exact(
    kind: LanguageModel, model: nn.Module, examples: Sequence[Example], dtype: torch.dtype
) -> Tensor:
    """The gradient of the mean over all predicted tokens [parameter], by one padded forward.

    The model stays as it is: a copy of it, in `dtype`, runs. Transformers computes the norms of T5
    and Llama, and T5's softmax, in float32 whatever the dtype.
    """
    model = copy.deepcopy(model).to(dtype)
    loss, count = kind.loss_sum(model, collate(examples))
    gradients = torch.autograd.grad(loss / count, list(model.parameters()), materialize_grads=True)
    return _flat(gradients)


def gradient_of(model: nn.Module) -> Tensor:
    """What is in `.grad` of all parameters [parameter], in float64; nothing is zero."""
    return _flat(
        [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in model.parameters()
        ]
    )


def distance(gradient: Tensor, exact: Tensor) -> Distance:
    """How far `gradient` [parameter] is from `exact` [parameter]."""
    norm, exact_norm = gradient.norm(), exact.norm()
    return Distance(
        error=float((gradient - exact).norm() / exact_norm),
        ratio=float(norm / exact_norm),
        cosine=float(gradient @ exact / (norm * exact_norm)),
    )


def _flat(gradients: Sequence[Tensor]) -> Tensor:
    return torch.cat([gradient.flatten().double() for gradient in gradients])
