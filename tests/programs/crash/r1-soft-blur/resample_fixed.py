import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import Function


def binomial(x):
    k = torch.tensor([1.0, 2.0, 1.0])
    k = (k[:, None] * k / 16).expand(x.shape[1], 1, 3, 3)
    return F.conv2d(x, k, padding=1, groups=x.shape[1])


class FixedBlur(Function):
    """The kernel is symmetric, so the backward is the same blur."""

    @staticmethod
    def forward(ctx, x):
        return binomial(x)

    @staticmethod
    def backward(ctx, grad):
        return FixedBlur.apply(grad)


class Soften(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, 1, 1))

    def forward(self, x):
        return self.gain * FixedBlur.apply(x)
