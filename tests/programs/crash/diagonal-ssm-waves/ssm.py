import torch
from torch import nn


class DiagonalSSM(nn.Module):
    """x[t+1] = a x[t] + b u[t], y = c x + d u, with a diagonal a in (0, 1)."""

    def __init__(self, width, order):
        super().__init__()
        self.log_rate = nn.Parameter(torch.rand(width, order) * 2 - 2)
        self.b = nn.Parameter(torch.randn(width, order) / order)
        self.c = nn.Parameter(torch.randn(width, order) / order)
        self.d = nn.Parameter(torch.ones(width))

    def forward(self, u):
        a = torch.exp(-torch.exp(self.log_rate))
        state, ys = 0.0, []
        for step in u.unbind(dim=1):
            state = a * state + self.b * step.unsqueeze(-1)
            ys.append((state * self.c).sum(-1) + self.d * step)
        return torch.stack(ys, dim=1)
