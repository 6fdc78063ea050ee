"""What a bilevel method is, and losses at other parameters than the model has."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from gradwright.engine.weights.bases import Weighting

Losses = Callable[[], Tensor | Sequence[Tensor]]
"""Runs the model on one batch and gives one loss per task, as a tensor [task] or a sequence."""

Parameters = Mapping[str, Tensor]
"""Values for the trainable parameters of a model, by name."""


class BilevelWeighting(Weighting):
    """A method whose weights make a step on training losses good for validation losses.

    Both losses are given as functions without arguments, which must use the same batch each time
    they are called, and run the model itself: while a method tries other parameters, the model
    has those. Its own parameters and buffers come out as they went in.
    """

    paper_heads = libmtl_heads = torchjd_heads = "weighted"

    @abstractmethod
    def backward(self, model: nn.Module, train: Losses, validation: Losses) -> Tensor:
        """Learn from the two batches, add to `.grad` of the model's parameters, return weights.

        `optimizer.step()` and `zero_grad()` stay with the caller.
        """


def trainable(model: nn.Module) -> dict[str, Tensor]:
    """The trainable parameters of `model`, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def as_leaves(parameters: Parameters) -> dict[str, Tensor]:
    """The same values as leaves of their own."""
    return {name: value.detach().requires_grad_() for name, value in parameters.items()}


def losses_here(losses: Losses) -> Tensor:
    """The losses [task] as the model is."""
    found = losses()
    return found if isinstance(found, Tensor) else torch.stack(list(found))


def losses_at(model: nn.Module, parameters: Parameters, losses: Losses) -> Tensor:
    """The losses [task] that `model` would have with `parameters`, differentiable in them."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    values = {f"model.{name}": value for name, value in {**parameters, **buffers}.items()}
    found: Tensor = functional_call(_Losses(model, losses), values, ())
    return found


def trained(
    model: nn.Module, losses: Losses, weights: Tensor, lr: float, steps: int
) -> dict[str, Tensor]:
    """Parameters after steps of gradient descent on weights · losses, differentiable in weights."""
    parameters = as_leaves(trainable(model))
    for _ in range(steps):
        total = weights @ losses_at(model, parameters, losses).to(weights)
        slopes = gradients(total, parameters, create_graph=weights.requires_grad)
        pairs = zip(parameters.items(), slopes, strict=True)
        parameters = {name: value - lr * slope for (name, value), slope in pairs}
        if not weights.requires_grad:  # no use for the graph of this step
            parameters = as_leaves(parameters)
    return parameters


def gradients(
    total: Tensor, parameters: Parameters, create_graph: bool = False, retain_graph: bool = False
) -> tuple[Tensor, ...]:
    """The gradient of a scalar at each of the parameters, zeros where it does not depend on it."""
    return torch.autograd.grad(
        total,
        list(parameters.values()),
        create_graph=create_graph,
        retain_graph=retain_graph or create_graph,
        materialize_grads=True,
    )


def moved(parameters: Parameters, direction: Sequence[Tensor], by: Tensor) -> dict[str, Tensor]:
    """parameters + by · direction."""
    return {
        name: value.detach() + by * part
        for (name, value), part in zip(parameters.items(), direction, strict=True)
    }


class _Losses(nn.Module):
    """The model and the function that runs it, so that the model's parameters can be replaced."""

    def __init__(self, model: nn.Module, losses: Losses) -> None:
        super().__init__()
        self.model = model
        self.losses = losses

    def forward(self) -> Tensor:
        return losses_here(self.losses)
