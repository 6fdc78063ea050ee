"""Gradient normalisation."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianLossWeighting
from gradwright.weighting.adam import Adam
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.checks import check_n_present, read_gramian, read_losses, tasks_where


class GradNorm(GramianLossWeighting):
    """Weights are learned so that the tasks' gradients are equally long, longer for slow tasks.

    With lengths d_k = w_k ‖g_k‖ and their mean d̄, and r_k the loss as a fraction of its first
    value, divided by the mean of these fractions, one step of Adam lowers Σ |d_k - d̄ r_k^alpha|,
    the targets d̄ r_k^alpha held fixed. The weights are n softmax(a) for n tasks; a is learned.

    Chen, Badrinarayanan, Lee and Rabinovich, GradNorm: Gradient Normalization for Adaptive Loss
    Balancing in Deep Multitask Networks, ICML 2018, algorithm 1, https://arxiv.org/abs/1711.02257.
    The paper learns w itself and then scales it to the sum n, which lets it fall below 0; the
    softmax is LibMTL's. The first value of a loss is that of the first step, as in the paper;
    LibMTL takes the mean of the first epoch. The lengths are those on all shared parameters.

    Called with a Gramian [task, task] and losses [task] of at least 0, returns weights [task] of
    sum n, and takes the step after. No optimizer needs to know of it: its state is in buffers.

    Args:
        n_tasks: number of tasks.
        alpha: how much slow tasks are helped.
        lr: learning rate of a.

    Example:
        >>> gradnorm = GradNorm(2, lr=0.1)
        >>> gradnorm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), torch.ones(2))
        tensor([1., 1.])
        >>> gradnorm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]), torch.ones(2))
        tensor([0.9003, 1.0997])
    """

    paper_heads = "weighted"

    logits: Tensor
    first_losses: Tensor

    def __init__(self, n_tasks: int, alpha: float = 1.5, lr: float = 0.025) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("alpha", alpha)
        super().__init__()
        self.alpha = alpha
        self.register_buffer("logits", torch.zeros(n_tasks, dtype=torch.float64))
        self.register_buffer("first_losses", torch.zeros(n_tasks, dtype=torch.float64))
        self.adam = Adam(n_tasks, lr)

    def forward(self, gramian: Tensor, losses: Tensor) -> Tensor:
        """Weights [task] of sum n, from before this step."""
        G = read_gramian(gramian)
        logits = self.of_present(self.logits).to(G)
        check_n_present(self, len(logits), len(G))
        fractions = self._fractions(read_losses(losses, len(G)))
        shares = logits.softmax(dim=0)
        weights = len(G) * shares
        norms = G.diagonal().clamp(min=0).sqrt()
        target = (weights @ norms) / len(G) * (fractions / fractions.mean()) ** self.alpha
        slope = norms * (weights * norms - target).sign()
        slope = slope / norms.amax().clamp(min=1e-150)  # Adam does not mind
        self.adam.step(self.logits, weights * (slope - shares @ slope), self._present)
        return weights.to(gramian)

    def _fractions(self, losses: Tensor) -> Tensor:
        """The losses as fractions of their first values above 0."""
        if (losses < 0).any():
            raise ValueError(
                "`GradNorm` compares losses with their first values, so it needs losses of at "
                f"least 0: that of {tasks_where(losses < 0)} is below. Add a constant to it."
            )
        first = self.of_present(self.first_losses).to(losses)
        first = torch.where(first > 0, first, losses)
        self.put_present(self.first_losses, first)
        fractions = losses / first.masked_fill(first == 0, 1)
        return torch.where(first > 0, fractions, 1) if fractions.any() else torch.ones_like(losses)
