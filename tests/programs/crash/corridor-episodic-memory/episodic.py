from collections import deque

import torch


class Dictionary:
    """Values of past situations, read by similarity of their keys."""

    def __init__(self, size=100, nearest=5):
        self.keys, self.values = deque(maxlen=size), deque(maxlen=size)
        self.nearest = nearest

    def __len__(self):
        return len(self.keys)

    def write(self, key, value):
        self.keys.append(key)
        self.values.append(float(value))

    def lookup(self, key):
        if len(self) < self.nearest:
            return key.sum() * 0.0
        bank = torch.stack(list(self.keys))
        dist = (bank - key).pow(2).sum(1)
        close, idx = dist.topk(self.nearest, largest=False)
        weight = 1.0 / (close + 1e-2)
        return (weight * torch.tensor(list(self.values))[idx]).sum() / weight.sum()
