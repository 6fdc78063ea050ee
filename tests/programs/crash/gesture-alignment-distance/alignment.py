import numpy as np
import torch


def soft_min(values, gamma):
    low = min(values)
    return low - gamma * np.log(sum(np.exp(-(v - low) / gamma) for v in values))


def soft_alignment(a, b, gamma=0.5):
    """Smoothed dynamic time warping between two feature sequences."""
    cost = torch.cdist(a, b).detach().numpy()
    table = np.full((len(a) + 1, len(b) + 1), 1e6)
    table[0, 0] = 0.0
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            around = (table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
            table[i, j] = cost[i - 1, j - 1] + soft_min(around, gamma)
    return torch.tensor(table[-1, -1] / (len(a) + len(b)), dtype=torch.float32)
