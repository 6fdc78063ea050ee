"""Auto-Lambda."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gradwright.weighting.adam import Adam
from gradwright.weighting.arguments import check_n_tasks, check_positive
from gradwright.weighting.bilevel.base import (
    BilevelWeighting,
    Losses,
    gradients,
    losses_at,
    losses_here,
    moved,
    trainable,
    trained,
)
from gradwright.weighting.values import state_of


class AutoLambda(BilevelWeighting):
    """Weights of which a step on the training losses lowers the validation losses most.

    θ'(w) = θ - η ∇ Σ w_k train_k(θ); Adam moves w against ∂ Σ_{k primary} validation_k(θ'(w)) / ∂w;
    then the model gets the gradient of Σ w_k train_k.

    Liu, James, Davison and Johns, Auto-Lambda: Disentangling Dynamic Task Relationships, TMLR 2022,
    https://arxiv.org/abs/2202.03091. The weights are free numbers as in the official code, which
    also counts momentum and weight decay into θ'. LibMTL has `softmax=True, lr=1e-3` and starts
    at 1 / K. Both estimate the derivative by two more forwards (`exact=False`); by default we
    differentiate through the step.

    See `BilevelWeighting` for the two losses; `backward` returns the weights [task].

    Args:
        n_tasks: number of tasks.
        inner_lr: η; the learning rate of the model's optimizer is right, also when it changes.
        lr: Adam's learning rate for the weights.
        start: first value of the weights, or of the scores that the softmax makes weights of.
        primary: positions of the tasks whose validation loss counts; by default all.
        softmax: weights are the softmax of scores.
        inner_steps: steps on the training losses; more than 1 needs `exact`.
        exact: differentiate through the step, else by finite differences.

    Example:
        >>> model = nn.Linear(1, 2, bias=False)
        >>> losses = lambda: model(torch.ones(1, 1))[0] ** 2 + 1
        >>> AutoLambda(2, inner_lr=0.1).backward(model, losses, losses)
        tensor([0.1001, 0.1001])
    """

    scores: Tensor
    primary: Tensor

    def __init__(
        self,
        n_tasks: int,
        inner_lr: float,
        lr: float = 1e-4,
        start: float = 0.1,
        primary: Sequence[int] | None = None,
        softmax: bool = False,
        inner_steps: int = 1,
        exact: bool = True,
    ) -> None:
        check_n_tasks(n_tasks)
        check_positive("inner_lr", inner_lr)
        check_positive("inner_steps", inner_steps)
        if inner_steps > 1 and not exact:
            raise ValueError("`inner_steps` above 1 needs `exact=True`: differences know one step.")
        super().__init__()
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.softmax = softmax
        self.exact = exact
        counted = torch.zeros(n_tasks)
        counted[list(range(n_tasks) if primary is None else primary)] = 1
        self.adam = Adam(n_tasks, lr)
        self.register_buffer("primary", counted)
        self.register_buffer("scores", torch.full((n_tasks,), float(start)))

    def backward(self, model: nn.Module, train: Losses, validation: Losses) -> Tensor:
        """Move the weights, add the gradient of the weighted training losses, return weights."""
        with torch.enable_grad():
            losses = losses_here(train)
            scores = state_of(self, self.scores, losses).requires_grad_()
            find = self._exact_slope if self.exact else self._difference_slope
            slope = find(model, train, validation, self._weights(scores))
            (gradient,) = torch.autograd.grad(self._weights(scores), scores, slope)
            self.adam.step(self.scores, gradient, self._present)
            weights = self._weights(state_of(self, self.scores, losses)).to(losses)
            (weights @ losses).backward()
        return weights

    def _weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=0) if self.softmax else scores

    def _validation(self, model: nn.Module, values: dict[str, Tensor], losses: Losses) -> Tensor:
        found = losses_at(model, values, losses)
        counted = state_of(self, self.primary, found).to(found)
        return (counted * found).sum()

    def _exact_slope(
        self, model: nn.Module, train: Losses, validation: Losses, weights: Tensor
    ) -> Tensor:
        weights = weights.detach().requires_grad_()
        parameters = trained(model, train, weights, self.inner_lr, self.inner_steps)
        total = self._validation(model, parameters, validation)
        slope: Tensor
        (slope,) = torch.autograd.grad(total, weights, materialize_grads=True)
        return slope

    def _difference_slope(
        self, model: nn.Module, train: Losses, validation: Losses, weights: Tensor
    ) -> Tensor:
        """-η ∇train_k(θ) · v with v = ∇validation(θ'), as a difference of train_k along v."""
        after = trained(model, train, weights.detach(), self.inner_lr, 1)
        v = gradients(self._validation(model, after, validation), after)
        length = torch.stack([part.norm() for part in v]).norm()
        if length == 0:
            return torch.zeros_like(weights)
        step = 0.01 / length
        with torch.no_grad():
            here = trainable(model)
            ahead, behind = (losses_at(model, moved(here, v, by), train) for by in (step, -step))
        slope: Tensor = -self.inner_lr * (ahead - behind) / (2 * step)
        return slope.to(weights)
