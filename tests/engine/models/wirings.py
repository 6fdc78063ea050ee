"""Models that differ in how losses, heads and trunk are wired."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from tests.engine.models.common import WIDTH, Build, Heads, Losses, Model, batch, mlp


class Cube(torch.autograd.Function):
    """x³ with a backward of its own."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class Split(torch.autograd.Function):
    """Two outputs; a backward that is told None where one is unused."""

    @staticmethod
    def forward(ctx, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first: Tensor | None, second: Tensor | None) -> Tensor | None:
        parts = [
            2 * first if first is not None else None,
            3 * second if second is not None else None,
        ]
        given = [part for part in parts if part is not None]
        return sum(given[1:], given[0]) if given else None


class Kept(torch.autograd.Function):
    """x scaled by something that is told no gradient."""

    @staticmethod
    def forward(ctx, x: Tensor, scale: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * 2, None


def gradient_that_never_comes() -> Model:
    """The graph reaches a parameter, but its gradient is None for every loss."""
    trunk, scale, heads, x = mlp(nn.Tanh()), nn.Linear(2, 2), Heads(), batch()
    return Model(
        nn.ModuleList([trunk, scale, heads]),
        lambda: heads(Kept.apply(trunk(x), scale.weight)),
    )


def custom_function() -> Model:
    trunk, heads, x = mlp(), Heads(), batch()

    def losses() -> Losses:
        left, right = Split.apply(Cube.apply(trunk(x)))
        return heads([left, right, left * right])

    return Model(nn.ModuleList([trunk, heads]), losses)


def one_forward_per_task() -> Model:
    trunk, heads = mlp(nn.Tanh()), Heads()
    batches = [batch() for _ in range(3)]
    return Model(nn.ModuleList([trunk, heads]), lambda: heads([trunk(x) for x in batches]))


def weight_in_trunk_and_head() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    low, high = (part.weight for part in trunk if isinstance(part, nn.Linear))

    def losses() -> Losses:
        made = heads(trunk(x))
        penalty = low.square().sum() + high.exp().mean()
        return made | {"task1": made["task1"] + penalty}

    return Model(nn.ModuleList([trunk, heads]), losses)


def two_levels() -> Model:
    low, high, heads = nn.Linear(5, WIDTH), nn.Linear(WIDTH, WIDTH), Heads()
    x = batch()

    def losses() -> Losses:
        below = low(x).tanh()
        above = high(below).tanh()
        return heads([below + above, above, below])

    return Model(nn.ModuleList([low, high, heads]), losses)


def nothing_shared_by_one() -> Model:
    trunk, heads, alone, x = mlp(nn.Tanh()), Heads(), nn.Linear(5, 1), batch()
    return Model(
        nn.ModuleList([trunk, heads, alone]),
        lambda: heads(trunk(x)) | {"alone": alone(x).square().mean()},
    )


def parts_shared_by_pairs() -> Model:
    parts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))
    trunk, heads, x = mlp(nn.Tanh()), Heads(n_tasks=4), batch()

    def losses() -> Losses:
        a, b, c = (part(trunk(x)).tanh() for part in parts)
        return heads([a + b, b + c, c + a, a * b])

    return Model(nn.ModuleList([parts, trunk, heads]), losses)


def loss_of_losses() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        made = heads(trunk(x))
        return made | {"task2": made["task0"] * made["task1"].exp() + made["task2"]}

    return Model(nn.ModuleList([trunk, heads]), losses)


def unused_and_frozen() -> Model:
    trunk, heads, unused, x = mlp(nn.Tanh()), Heads(), nn.Linear(3, 3), batch()
    trunk[0].requires_grad_(False)
    return Model(nn.ModuleList([trunk, heads, unused]), lambda: heads(trunk(x)))


def parameter_as_loss() -> Model:
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()
    scale = nn.ParameterList([torch.tensor(0.7)])

    def losses() -> Losses:
        return heads(trunk(x) * scale[0]) | {"scale": scale[0]}

    return Model(nn.ModuleList([trunk, heads, scale]), losses)


def checkpointed(*, use_reentrant: bool) -> Model:
    first, trunk, heads = nn.Linear(5, 5), mlp(nn.Tanh(), nn.Dropout(0.2)), Heads()
    x = batch()

    def losses() -> Losses:
        features = checkpoint(trunk, first(x), use_reentrant=use_reentrant)
        assert isinstance(features, Tensor)
        return heads(features)

    return Model(nn.ModuleList([first, trunk, heads]), losses)


def checkpointed_in_parts(*, use_reentrant: bool) -> Model:
    """Two parts with one tied weight, then a part that is not checkpointed."""
    first, one, two, heads = nn.Linear(5, WIDTH), nn.Linear(4, 4), nn.Linear(4, 4), Heads()
    two.weight = one.weight
    x = batch()

    def losses() -> Losses:
        low = checkpoint(one, first(x), use_reentrant=use_reentrant)
        high = checkpoint(two, low.tanh(), use_reentrant=use_reentrant)
        return heads(F.linear(high, one.weight))

    return Model(nn.ModuleList([first, one, two, heads]), losses)


def checkpointed_heads(*, use_reentrant: bool) -> Model:
    first, trunk, heads, x = nn.Linear(5, 5), mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = checkpoint(trunk, first(x), use_reentrant=use_reentrant)
        return {
            f"task{k}": checkpoint(heads.loss, k, features, use_reentrant=use_reentrant)
            for k in range(3)
        }

    return Model(nn.ModuleList([first, trunk, heads]), losses)


def checkpointed_per_task(*, use_reentrant: bool) -> Model:
    """One forward per task, each under a checkpoint."""
    first, trunk, heads = nn.Linear(5, 5), mlp(nn.Tanh()), Heads()
    batches = [batch() for _ in range(3)]

    def losses() -> Losses:
        return heads([checkpoint(trunk, first(x), use_reentrant=use_reentrant) for x in batches])

    return Model(nn.ModuleList([first, trunk, heads]), losses)


CHECKPOINTED = {
    "checkpoint": checkpointed,
    "checkpoints and a tied weight": checkpointed_in_parts,
    "checkpointed heads": checkpointed_heads,
    "one checkpoint per task": checkpointed_per_task,
}


def branches_in_place() -> Model:
    """One head writes into its slice of a tensor that the others read later."""
    trunk, heads, x = mlp(nn.Tanh()), Heads(), batch()

    def losses() -> Losses:
        features = trunk(x) * 1
        first = heads.loss(0, features.tanh())
        features[:, 0] = F.softplus(features[:, 1].clone())
        return {"task0": first, "task1": heads.loss(1, features), "task2": heads.loss(2, features)}

    return Model(nn.ModuleList([trunk, heads]), losses)


MODELS: dict[str, Build] = {
    "custom functions": custom_function,
    "a gradient that never comes": gradient_that_never_comes,
    "one forward per task": one_forward_per_task,
    "weight in trunk and head": weight_in_trunk_and_head,
    "heads read two levels": two_levels,
    "a loss that reaches nothing shared": nothing_shared_by_one,
    "parts shared by pairs": parts_shared_by_pairs,
    "a loss of other losses": loss_of_losses,
    "unused and frozen parameters": unused_and_frozen,
    "a parameter as loss": parameter_as_loss,
    "in-place between heads": branches_in_place,
    **{name: partial(build, use_reentrant=False) for name, build in CHECKPOINTED.items()},
}
