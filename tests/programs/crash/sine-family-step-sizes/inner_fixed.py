import torch
from torch import nn


def adapt(loss, start, rates, support, rounds=2):
    """Gradient steps on the support set, one rate for each weight."""
    weights = dict(start)
    for _ in range(rounds):
        grads = torch.autograd.grad(loss(weights, *support), list(weights.values()), create_graph=True)
        weights = {k: w - rates[k] * g for (k, w), g in zip(weights.items(), grads)}
    return weights
