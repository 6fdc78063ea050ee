import math

import torch
from torch import nn


def gcn_norm(edge_index, edge_weight, num_nodes):
    """Dense D^-1/2 (A + I) D^-1/2, small graphs only."""
    adj = torch.zeros(num_nodes, num_nodes)
    adj[edge_index[0], edge_index[1]] = edge_weight
    adj = adj + torch.eye(num_nodes)
    deg = adj.sum(1).clamp(min=1e-6).rsqrt()
    return deg[:, None] * adj * deg[None, :]


class EvolveGCN(nn.Module):
    """GCN whose weight matrix is rolled forward by a GRU, one step per snapshot."""

    def __init__(self, in_channels):
        super().__init__()
        self.in_channels = in_channels
        self.initial_weight = nn.Parameter(torch.empty(1, in_channels, in_channels))
        self.recurrent = nn.GRU(in_channels, in_channels, num_layers=1)
        self.weight = None
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.in_channels)
        nn.init.uniform_(self.initial_weight, -bound, bound)

    def reinitialize_weight(self):
        self.weight = None

    def forward(self, x, adj):
        if self.weight is None:
            W, _ = self.recurrent(self.initial_weight, self.initial_weight)
        else:
            W, _ = self.recurrent(self.weight, self.weight)
        self.weight = W
        return adj @ (x @ W.squeeze(0))
