import torch
from torch import nn


class TideCell(nn.Module):
    """Minimal gated unit whose gate closes during storms."""

    def __init__(self, inputs, size):
        super().__init__()
        self.gate = nn.Linear(inputs + size, size)
        self.new = nn.Linear(inputs + size, size)

    def forward(self, x, h, storm):
        both = torch.cat([x, h], dim=1)
        gate = torch.sigmoid(self.gate(both))
        if storm.any():
            gate *= 1 - 0.5 * storm.float().unsqueeze(1)
        return (1 - gate) * h + gate * torch.tanh(self.new(both)), gate
