import torch


def soften(network, x, temperature):
    """Log-probabilities at a temperature."""
    scores = network(x) / temperature
    return scores.log_softmax(dim=-1)
