"""Small models and ragged batches for the tests of windows."""

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TOKENS = (1, 6, 2, 5, 3)
Batch = tuple[Tensor, Tensor]


class Small(nn.Module):
    """Classes from a token's number; one parameter is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.hidden, self.out = nn.Embedding(11, 6), nn.Linear(6, 8), nn.Linear(8, 7)
        self.hidden.bias.requires_grad_(False)

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.out(self.hidden(self.embed(tokens)).tanh())
        return logits


def model(dtype: torch.dtype = torch.float64) -> Small:
    torch.manual_seed(0)
    return Small().to(dtype)


def batches(tokens: Sequence[int] = TOKENS) -> list[Batch]:
    torch.manual_seed(1)
    return [(torch.randint(0, 11, (n,)), torch.randint(0, 7, (n,))) for n in tokens]


def summed(net: Callable[[Tensor], Tensor], batch: Batch) -> Tensor:
    """The sum of the losses of a batch."""
    return F.cross_entropy(net(batch[0]), batch[1], reduction="sum")


def whole(parts: Iterable[Batch]) -> Batch:
    x, y = zip(*parts, strict=True)
    return torch.cat(x), torch.cat(y)


def mean_gradients(net: nn.Module, parts: Iterable[Batch]) -> list[Tensor | None]:
    """The gradients of the mean over all tokens, in one piece; `.grad` stays as it is."""
    before = [parameter.grad for parameter in net.parameters()]
    net.zero_grad()
    one = whole(parts)
    (summed(net, one) / len(one[1])).backward()
    found = gradients(net)
    for parameter, gradient in zip(net.parameters(), before, strict=True):
        parameter.grad = gradient
    return found


def grad(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def gradients(net: nn.Module) -> list[Tensor | None]:
    found = (parameter.grad for parameter in net.parameters())
    return [None if gradient is None else gradient.detach().clone() for gradient in found]


def plus(one: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The sums of gradients, where None stands for zero."""
    pairs = zip(one, other, strict=True)
    return [b if a is None else a if b is None else a.to_dense() + b.to_dense() for a, b in pairs]


def difference(found: Sequence[Tensor | None], expected: Sequence[Tensor | None]) -> float:
    """|found - expected| / |expected| over all; infinite where one has a gradient the other not."""
    if [a is None for a in found] != [b is None for b in expected]:
        return float("inf")
    flat = [
        torch.cat([g.to_dense().double().flatten() for g in side if g is not None])
        for side in (found, expected)
    ]
    return float((flat[0] - flat[1]).norm() / flat[1].norm())
