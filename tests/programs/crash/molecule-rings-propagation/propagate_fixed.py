import torch
from torch import nn


class Propagation(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.send = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, edges):
        src, dst = edges
        message = torch.tanh(self.send(h))
        h = h.index_add(0, dst, 0.5 * message[src])
        return self.norm(h)
