import torch
from torch import nn


class DenseGradMatmul(torch.autograd.Function):
    """Multiplies with the masked weight but reports the dense gradient."""

    @staticmethod
    def forward(ctx, x, weight, mask):
        ctx.save_for_backward(x, weight * mask)
        return x @ (weight * mask).t()

    @staticmethod
    def backward(ctx, grad):
        x, used = ctx.saved_tensors
        return grad @ used, grad.t() @ x, None


class SparseLinear(nn.Module):
    def __init__(self, inp, out, density=0.4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out, inp) * (inp * density) ** -0.5)
        self.bias = nn.Parameter(torch.zeros(out))
        self.register_buffer("mask", (torch.rand(out, inp) < density).float())

    def forward(self, x):
        return DenseGradMatmul.apply(x, self.weight, self.mask) + self.bias
