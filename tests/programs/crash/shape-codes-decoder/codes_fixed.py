import torch


def make_codes(shapes, size, spread=0.1):
    return (torch.randn(shapes, size) * spread).requires_grad_()
