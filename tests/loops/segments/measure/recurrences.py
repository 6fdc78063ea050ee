"""Recurrences of one number, whose gradients are known in closed form."""

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """h_t = a h_(t-1) + x_t for one row; the loss is the sum of h, or of h² / 2, over the times."""

    def __init__(self, a: float, square: bool = False) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=torch.float64))
        self.square = square

    def forward(self, x: Tensor, h: Tensor | None) -> tuple[Tensor, Tensor]:
        total = x.new_zeros(())
        h = x.new_zeros(1) if h is None else h
        for at_time in x.unbind(1):
            h = self.a * h + at_time
            total = total + (h.square() / 2 if self.square else h).sum()
        return total, h


def inputs(times: int) -> Tensor:
    """One row: [1, time]."""
    generator = torch.Generator().manual_seed(2)
    return torch.rand(1, times, generator=generator, dtype=torch.float64)
