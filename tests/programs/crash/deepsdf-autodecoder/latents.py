import torch


class LatentBank:
    """One learnable code per training shape (auto-decoder)."""

    def __init__(self, n_shapes, dim, std=0.05, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.codes = torch.randn(n_shapes, dim, generator=g, requires_grad=True) * std
        self.dim = dim

    def __getitem__(self, idx):
        return self.codes[idx]

    def __len__(self):
        return self.codes.shape[0]

    def parameters(self):
        return [self.codes]

    def regulariser(self, idx):
        return self.codes[idx].pow(2).sum(-1).mean()
