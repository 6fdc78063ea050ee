"""Weighted sums of experts, with errors that name what does not fit."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def gate_weights(gate: nn.Module, read: object, n_experts: int, name: str) -> Tensor:
    """The softmax [batch, expert] of what `gate` makes of `read`.

    Raises:
        TypeError: the gate returns no tensor.
        ValueError: it does not return one logit per expert.
    """
    return gate_logits(gate, read, n_experts, name).softmax(dim=-1)


def gate_logits(gate: nn.Module, read: object, width: int, name: str) -> Tensor:
    """What `gate` makes of `read`, [batch, width]; raises as `gate_weights`."""
    logits: Tensor = gate(read)
    check_tensor(name, logits)
    if logits.ndim != 2 or logits.shape[1] != width:
        seen = f" It read {list(read.shape)}." if isinstance(read, Tensor) else ""
        raise ValueError(
            f"`{name}` needs to return [batch, {width}]: got {list(logits.shape)}.{seen} "
            "`gate` is called with this number, and `gate_input` selects what a gate reads."
        )
    return logits


def stack_experts(features: Sequence[Tensor]) -> Tensor:
    """Outputs of experts as one tensor [batch, expert, *feature].

    Raises:
        TypeError: one is no tensor.
        ValueError: they differ in shape.
    """
    check_same_shape("expert", features)
    return torch.stack(list(features), dim=1)


def mix(weights: Tensor, experts: Tensor) -> Tensor:
    """Σ_e weights [batch, expert] · experts [batch, expert, *feature]: [batch, *feature].

    Raises:
        ValueError: there are weights for another number of examples.
    """
    if len(weights) != len(experts):
        raise ValueError(
            f"A gate returned weights for {len(weights)} examples, but the experts returned "
            f"{len(experts)}. Both need the batch as their first dimension; `gate_input` selects "
            "what a gate reads."
        )
    return torch.einsum("be,be...->b...", weights, experts)


def check_same_shape(name: str, features: Sequence[Tensor]) -> None:
    """Raises an error if what is to be mixed is no tensor, or differs in shape."""
    for feature in features:
        check_tensor(name, feature)
    shapes = [list(feature.shape) for feature in features]
    if any(shape != shapes[0] for shape in shapes):
        found = ", ".join(map(str, shapes))
        raise ValueError(
            f"The outputs that `{name}` modules give are mixed, so they need one shape: got "
            f"{found}."
        )


def check_tensor(name: str, value: object) -> None:
    """Raises `TypeError` if what the module `name` returned is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"`{name}` needs to return a tensor, which is to be mixed: got {type(value).__name__}. "
            "Wrap the module in one that selects the tensor."
        )
