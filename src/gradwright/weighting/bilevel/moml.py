"""Multi-objective meta learning."""

import torch
from torch import Tensor, nn

from gradwright.weighting.adam import Adam
from gradwright.weighting.arguments import check_n_tasks, check_positive
from gradwright.weighting.bilevel.base import (
    BilevelWeighting,
    Losses,
    losses_at,
    losses_here,
    trained,
)
from gradwright.weighting.solver import min_norm
from gradwright.weighting.values import state_of


class MOML(BilevelWeighting):
    """Weights of which steps on the training losses lower every validation loss.

    θ'(a) is θ after `inner_steps` steps on Σ w_k train_k with w = softmax(a). The gradients at a of
    the validation losses of θ'(a), each scaled to length 1, are combined to the shortest vector of
    their convex hull (MGDA); Adam moves a against it; then the model gets the gradient of
    Σ w_k train_k.

    Ye, Lin, Yue, Guo, Xiao and Zhang, Multi-Objective Meta Learning, NeurIPS 2021,
    https://arxiv.org/abs/2102.07121. As in LibMTL, by the same authors, which has one inner step
    only and solves for the shortest vector approximately.

    See `BilevelWeighting` for the two losses; `backward` returns the weights [task], with sum 1.

    Args:
        n_tasks: number of tasks.
        inner_lr: learning rate of the inner steps.
        lr: Adam's learning rate for a.
        inner_steps: number of inner steps; memory grows with it.

    Example:
        >>> model = nn.Linear(1, 2, bias=False)
        >>> losses = lambda: model(torch.ones(1, 1))[0] ** 2 + 1
        >>> MOML(2).backward(model, losses, losses).sum()
        tensor(1.)
    """

    scores: Tensor

    def __init__(
        self, n_tasks: int, inner_lr: float = 0.1, lr: float = 1e-3, inner_steps: int = 1
    ) -> None:
        check_n_tasks(n_tasks)
        check_positive("inner_lr", inner_lr)
        check_positive("inner_steps", inner_steps)
        super().__init__()
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.adam = Adam(n_tasks, lr)
        self.register_buffer("scores", torch.full((n_tasks,), 1 / n_tasks))

    def backward(self, model: nn.Module, train: Losses, validation: Losses) -> Tensor:
        """Move the weights, add the gradient of the weighted training losses, return weights."""
        with torch.enable_grad():
            losses = losses_here(train)
            scores = state_of(self, self.scores, losses).requires_grad_()
            self.adam.step(
                self.scores, self._slope(model, train, validation, scores), self._present
            )
            weights = torch.softmax(state_of(self, self.scores, losses), dim=0).to(losses)
            (weights @ losses).backward()
        return weights

    def _slope(self, model: nn.Module, train: Losses, validation: Losses, scores: Tensor) -> Tensor:
        weights = torch.softmax(scores, dim=0)
        parameters = trained(model, train, weights, self.inner_lr, self.inner_steps)
        rows = torch.stack(
            [
                torch.autograd.grad(loss, scores, retain_graph=True, materialize_grads=True)[0]
                for loss in losses_at(model, parameters, validation)
            ]
        )
        rows = torch.nn.functional.normalize(rows, dim=1, eps=torch.finfo(rows.dtype).tiny)
        return min_norm((rows @ rows.T).cpu()).to(rows) @ rows
