from functools import cached_property

import torch
from torch import nn


class StationGraph(nn.Module):
    """Which station follows which, learned from two embeddings."""

    def __init__(self, stations, rank=4):
        super().__init__()
        self.source = nn.Parameter(torch.randn(stations, rank))
        self.target = nn.Parameter(torch.randn(stations, rank))

    @cached_property
    def adjacency(self):
        return torch.softmax(torch.relu(self.source @ self.target.T), dim=1)
