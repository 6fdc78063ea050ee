import torch


@torch.inference_mode()
def output_statistics(loader):
    """Mean and spread of the targets in one pass."""
    count, first, second = 0, 0.0, 0.0
    for _, y in loader:
        count += len(y)
        first = first + y.sum(0)
        second = second + y.pow(2).sum(0)
    mean = first / count
    return mean, (second / count - mean ** 2).sqrt()
