import numpy as np
import torch


def soft_min(values, gamma):
    return -gamma * torch.logsumexp(-torch.stack(values) / gamma, dim=0)


def soft_alignment(a, b, gamma=0.5):
    """Smoothed dynamic time warping between two feature sequences."""
    cost = torch.cdist(a, b)
    table = [[torch.tensor(1e6)] * (len(b) + 1) for _ in range(len(a) + 1)]
    table[0][0] = torch.tensor(0.0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            around = (table[i - 1][j], table[i][j - 1], table[i - 1][j - 1])
            table[i][j] = cost[i - 1, j - 1] + soft_min(around, gamma)
    return table[-1][-1] / (len(a) + len(b))
