import torch


class XBM:
    """Cross-batch memory: a ring of past embeddings and their labels."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.feats = []
        self.targets = []

    def __len__(self):
        return sum(len(t) for t in self.targets)

    def enqueue_dequeue(self, feats, targets):
        self.feats.append(feats.detach())
        self.targets.append(targets.detach())
        while len(self) > self.capacity:
            self.feats.pop(0)
            self.targets.pop(0)

    def get(self):
        return torch.cat(self.feats), torch.cat(self.targets)
