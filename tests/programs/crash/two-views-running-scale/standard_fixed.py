import torch
from torch import nn


class RunningScale(nn.Module):
    """Standardises features by statistics averaged over batches."""

    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    @torch.no_grad()
    def observe(self, x):
        self.mean.lerp_(x.mean(0), self.momentum)
        self.spread.lerp_(x.std(0), self.momentum)

    def forward(self, x):
        if self.training:
            self.observe(x)
        return (x - self.mean) / self.spread.clone()
