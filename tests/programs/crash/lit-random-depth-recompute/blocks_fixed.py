import torch
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, patches, dim, skip):
        super().__init__()
        self.skip = skip
        self.norm = nn.LayerNorm(dim)
        self.across = nn.Linear(patches, patches)
        self.within = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        if self.training and torch.rand(()).item() < self.skip:
            return x
        return x + self.within(torch.tanh(x))
