"""Adam for weights that a method learns by itself, with its state in buffers."""

import torch
from torch import Tensor, nn

from gradwright.weighting.arguments import check_not_negative


class Adam(nn.Module):
    """Adam on a vector [task]; tasks missing from a step neither move nor age.

    Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015, algorithm 1,
    https://arxiv.org/abs/1412.6980. `weight_decay` adds to the gradient, as in `torch.optim.Adam`.
    """

    mean: Tensor
    square: Tensor
    steps: Tensor

    def __init__(self, n_tasks: int, lr: float, weight_decay: float = 0.0) -> None:
        check_not_negative("lr", lr)
        check_not_negative("weight_decay", weight_decay)
        super().__init__()
        self.lr = lr
        self.weight_decay = weight_decay
        for name in ("mean", "square", "steps"):
            self.register_buffer(name, torch.zeros(n_tasks))

    def step(self, values: Tensor, gradient: Tensor, tasks: Tensor | None = None) -> None:
        """Move `values` [task] in place; `gradient` is for the tasks at the positions `tasks`."""
        at = slice(None) if tasks is None else tasks.to(values.device)
        descent = gradient.to(values) + self.weight_decay * values[at]
        self.steps[at] += 1
        self.mean[at] += 0.1 * (descent - self.mean[at])
        self.square[at] += 0.001 * (descent.square() - self.square[at])
        mean = self.mean[at] / (1 - 0.9 ** self.steps[at])
        square = self.square[at] / (1 - 0.999 ** self.steps[at])
        values[at] -= self.lr * mean / (square.sqrt() + 1e-8)
