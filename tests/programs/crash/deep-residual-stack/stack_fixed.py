import random

from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim, survive):
        super().__init__()
        self.survive = survive
        self.body = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h, skip):
        if skip:
            return h
        return h + self.body(h)


class ResidualStack(nn.Module):
    def __init__(self, dim, depth, survive):
        super().__init__()
        self.blocks = nn.ModuleList(Block(dim, survive) for _ in range(depth))

    def forward(self, h):
        for block in self.blocks:
            skip = self.training and random.random() > block.survive
            h = checkpoint(block, h, skip, use_reentrant=False) if self.training else block(h, skip)
        return h
