"""Models with hooks: on weights, on the features between trunk and heads, inside the trunk."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.engine.models.common import Build, Heads, Losses, Model, batch, mlp

Hook = Callable[[Tensor], Tensor | None]


def reverse(gradient: Tensor) -> Tensor:
    return -gradient


def clip(gradient: Tensor) -> Tensor:
    return gradient.clamp(-0.01, 0.01)


def halve_if_large(gradient: Tensor) -> Tensor | None:
    """Changes a gradient of ones, leaves one of zeros alone, and twice is not once."""
    return gradient / 2 if gradient.abs().max() > 1e-6 else None


def reverse_in_place(gradient: Tensor) -> None:
    gradient.neg_()


def hook_on_features(hook: Hook) -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = trunk(x)
        features.register_hook(hook)
        return heads(features)

    return Model(nn.ModuleList([trunk, heads]), losses)


def hook_inside(hook: Hook) -> Model:
    first, second, heads, x = nn.Linear(5, 4), nn.Linear(4, 4), Heads(), batch()

    def losses() -> Losses:
        inside = first(x).tanh()
        inside.register_hook(hook)
        return heads(second(inside))

    return Model(nn.ModuleList([first, second, heads]), losses)


def hook_in_branch(hook: Hook) -> Model:
    """While another branch waits, so that the shared part cannot be cut there."""
    left, right, heads, x = mlp(nn.Tanh()), mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        waiting = left(x)
        inside = right[0](x).tanh()
        inside.register_hook(hook)
        return heads(waiting * right[2](inside))

    return Model(nn.ModuleList([left, right, heads]), losses)


def hook_on_weight(hook: Hook) -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    for parameter in (*trunk.parameters(), *heads.parameters()):
        parameter.register_hook(hook)
    return Model(nn.ModuleList([trunk, heads]), lambda: heads(trunk(x)))


def hook_on_weight_at_border(hook: Hook) -> Model:
    """Two forwards share nothing but the weights, so the border is at the weights."""
    trunk, heads = mlp(nn.Tanh()), Heads()
    for parameter in trunk.parameters():
        parameter.register_hook(hook)
    batches = [batch() for _ in range(3)]
    return Model(nn.ModuleList([trunk, heads]), lambda: heads([trunk(x) for x in batches]))


def one_task_reversed() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = trunk(x)
        reversed_for_one = features * 1
        reversed_for_one.register_hook(reverse)
        return heads([features, reversed_for_one, features])

    return Model(nn.ModuleList([trunk, heads]), losses)


def module_hook() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def tripled(module: nn.Module, into: object, out: tuple[Tensor]) -> tuple[Tensor]:
        return (out[0] * 3,)

    def doubled(module: nn.Module, out: Any) -> tuple[Tensor]:
        return (out[0] * 2,)

    trunk[2].register_full_backward_hook(tripled)
    trunk[1].register_full_backward_pre_hook(doubled)
    return Model(nn.ModuleList([trunk, heads]), lambda: heads(trunk(x)))


def node_hooks() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = trunk(x).tanh()
        assert features.grad_fn is not None
        features.grad_fn.register_prehook(lambda out: (out[0] * 3,))
        features.grad_fn.register_hook(lambda into, out: (torch.sin(into[0]),))
        return heads(features)

    return Model(nn.ModuleList([trunk, heads]), losses)


LINEAR: dict[str, Build] = {
    "reversed at the border": lambda: hook_on_features(reverse),
    "reversed in place at the border": lambda: hook_on_features(reverse_in_place),
    "reversed inside the trunk": lambda: hook_inside(reverse),
    "reversed in a branch": lambda: hook_in_branch(reverse),
    "reversed at the weights": lambda: hook_on_weight(reverse),
    "reversed for one task": one_task_reversed,
    "module hooks": module_hook,
}
NOT_LINEAR: dict[str, Build] = {
    "clipped at the border": lambda: hook_on_features(clip),
    "halved at the border where large": lambda: hook_on_features(halve_if_large),
    "clipped inside the trunk": lambda: hook_inside(clip),
    "clipped in a branch": lambda: hook_in_branch(clip),
    "clipped at the weights": lambda: hook_on_weight(clip),
    "clipped at weights of three forwards": lambda: hook_on_weight_at_border(clip),
    "halved at weights of three forwards where large": lambda: hook_on_weight_at_border(
        halve_if_large
    ),
    "node hooks": node_hooks,
}
