"""The random orders in which a method takes the other tasks for each task."""

import torch
from torch import Tensor


def visiting_orders(n_tasks: int) -> Tensor:
    """For each task, the positions of all others in random order [task, task - 1].

    Drawn from torch's global generator, one permutation of all tasks after the other.
    """
    orders = torch.stack([torch.randperm(n_tasks) for _ in range(n_tasks)])
    others = orders != torch.arange(n_tasks)[:, None]
    return orders[others].reshape(n_tasks, n_tasks - 1)
