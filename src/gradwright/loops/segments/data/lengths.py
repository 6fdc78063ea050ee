"""Segments of random lengths, and the learning rate that goes with each."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.optim import Optimizer

from gradwright.loops.errors import SegmentError


class RandomLengths:
    """Lengths as AWD-LSTM draws them, so that the borders of segments are not always the same.

    A length is normal around `length`, or with probability `short` around half of it, with the
    standard deviation `spread`, and at least `spread` (Merity, Keskar and Socher: Regularizing and
    Optimizing LSTM Language Models, ICLR 2018, https://arxiv.org/abs/1708.02182, section 5).
    Multiply the learning rate by `segment.length / length`, as the paper does: see `scaled_lr`.

    Args:
        length: The usual length, in times.
        spread: The standard deviation and the least length, in times.
        short: How often half the length is drawn around.
        generator: Where the random numbers come from; torch's own one by default.

    Example:
        >>> lengths = RandomLengths(70, generator=torch.Generator().manual_seed(0))
        >>> many = [lengths() for _ in range(1000)]
        >>> min(many) >= 5, 66 < sum(many) / len(many) < 70  # the mean is 0.95 × 70 + 0.05 × 35
        (True, True)
    """

    def __init__(
        self,
        length: int,
        *,
        spread: int = 5,
        short: float = 0.05,
        generator: torch.Generator | None = None,
    ) -> None:
        if length < 1 or spread < 1 or not 0 <= short <= 1:
            raise SegmentError(
                "random lengths need `length` and `spread` of 1 or more and `short` from 0 to 1: "
                f"got {length}, {spread} and {short}."
            )
        self.length, self.spread, self.short = length, spread, short
        self._generator = generator

    def __call__(self) -> int:
        """The next length."""
        is_short = float(torch.rand((), generator=self._generator)) < self.short
        mean = self.length / 2 if is_short else self.length
        normal = float(torch.randn((), generator=self._generator))
        return max(self.spread, int(mean + self.spread * normal))


@contextmanager
def scaled_lr(optimizer: Optimizer, factor: float) -> Iterator[None]:
    """Within the block every learning rate of the optimizer is multiplied by `factor`.

    Example:
        >>> parameter = torch.nn.Parameter(torch.ones(()))
        >>> optimizer = torch.optim.SGD([parameter], lr=0.1)
        >>> with scaled_lr(optimizer, 35 / 70):
        ...     optimizer.param_groups[0]["lr"]
        0.05
        >>> optimizer.param_groups[0]["lr"]
        0.1
    """
    before = [group["lr"] for group in optimizer.param_groups]
    for group, lr in zip(optimizer.param_groups, before, strict=True):
        group["lr"] = lr * factor
    try:
        yield
    finally:
        for group, lr in zip(optimizer.param_groups, before, strict=True):
            group["lr"] = lr
