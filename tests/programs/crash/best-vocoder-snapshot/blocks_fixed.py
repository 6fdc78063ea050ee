import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class DilatedStack(nn.Module):
    def __init__(self, width=12, levels=4):
        super().__init__()
        self.inp = nn.Conv1d(1, width, 1)
        self.levels = nn.ModuleList(
            weight_norm(nn.Conv1d(width, width, 2, dilation=2 ** k)) for k in range(levels))
        self.out = nn.Conv1d(width, 1, 1)

    def forward(self, wave):
        h = self.inp(wave)
        for k, conv in enumerate(self.levels):
            h = h + torch.tanh(conv(nn.functional.pad(h, (2 ** k, 0))))
        return self.out(h)
