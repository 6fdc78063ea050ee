"""The choice of one parent by Gumbel-softmax, and its temperature over time."""

import torch
from torch import Tensor, nn


class Branching(nn.Module):
    """The choice of a parent for each of some nodes; logits are [node, parent]."""

    def __init__(self, n_nodes: int, n_parents: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(n_nodes, n_parents))

    def chosen(self) -> list[int]:
        """For each node the likeliest parent, the first of several."""
        chosen: list[int] = self.logits.argmax(dim=1).tolist()
        return chosen

    def forward(self, temperature: Tensor, hard: bool, learned: bool) -> Tensor:
        """A draw d [node, parent]: softmax((logits + Gumbel noise) / temperature).

        With `hard` one parent's entry is 1, and gradients are those of the softmax. Unless
        `learned`, the logits get no gradient.
        """
        logits = self.logits if learned else self.logits.detach()
        noise = -torch.empty_like(logits).exponential_().log()
        soft = ((logits + noise) / temperature).softmax(dim=-1)
        if not hard:
            return soft
        one_hot = torch.zeros_like(soft).scatter(1, soft.argmax(dim=1, keepdim=True), 1.0)
        # In this order: for two equal numbers a - a is 0 exactly, so that entries are 0 and 1.
        return one_hot + (soft - soft.detach())


class Cooling(nn.Module):
    """A temperature start / √(epoch + 1), and a warm-up; the epoch is part of the state."""

    epoch: Tensor

    def __init__(self, start: float, warm_up: int) -> None:
        super().__init__()
        self.start, self.warm_up = start, warm_up
        self.register_buffer("epoch", torch.tensor(0))

    def advance(self) -> None:
        """One epoch more."""
        self.epoch += 1

    @property
    def temperature(self) -> Tensor:
        """What softmaxes are divided by, a scalar."""
        return self.start / (self.epoch + 1).sqrt()

    @property
    def warming_up(self) -> bool:
        """Whether the choices are not yet learned."""
        return self.warm_up > 0 and int(self.epoch) < self.warm_up  # int() waits for the GPU
