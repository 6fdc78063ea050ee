import torch


def quadratic(dim):
    a, b = torch.randn(dim, dim) / dim**0.5, torch.randn(dim)
    return lambda theta: (a @ theta - b).pow(2).sum()


def cut(slots):
    """Ends the history of everything that an unroll carries on."""
    for name, tensor in slots.items():
        slots[name] = tensor.detach()
    return slots
