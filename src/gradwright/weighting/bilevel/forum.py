"""First-order multi-gradient bilevel optimization."""

import torch
from torch import Tensor, nn

from gradwright.weighting.adam import Adam
from gradwright.weighting.arguments import check_n_tasks, check_not_negative, check_positive
from gradwright.weighting.bilevel.base import (
    BilevelWeighting,
    Losses,
    gradients,
    losses_at,
    losses_here,
    trainable,
    trained,
)
from gradwright.weighting.bilevel.program import minimise
from gradwright.weighting.solver import min_norm
from gradwright.weighting.values import state_of, wide


class FORUM(BilevelWeighting):
    """Lowers every validation loss, while the model stays near its best for the weighted sum.

    f(a, θ) = Σ w_k train_k(θ) with w = softmax(a); q = f(a, θ) - f(a, θ_T), where θ_T is θ after
    `inner_steps` steps on f, held fixed: how far θ is from the best. With g_k = ∇validation_k
    scaled to length 1 and π_k = φ - ∇q · g_k / ||∇q||²,

        min ||Σ λ_k g_k + ν ∇q||² - ν φ ||∇q||²  for λ on the simplex, ν ≥ 0 and ν ≥ Σ π_k λ_k

    gives λ, which is averaged over the epochs e = 1, 2, … by λ̄ ← λ̄ + e^(-3/4) (λ - λ̄). The model
    gets Σ λ̄_k g_k + ν ∂q/∂θ with ν = max(Σ π_k λ̄_k, 0), and Adam moves a along -ν ∂q/∂a.

    **Call `end_epoch()` after every epoch**, else λ̄ is not averaged. No second derivatives.

    Ye, Lin, Cao, Zhang and Tsang, A First-Order Multi-Gradient Algorithm for Multi-Objective
    Bi-Level Optimization, ECAI 2024, https://arxiv.org/abs/2401.09257. As in LibMTL, by the same
    authors.

    See `BilevelWeighting` for the two losses; `backward` returns the weights w [task], with sum 1.

    Args:
        n_tasks: number of tasks.
        inner_lr: learning rate of the inner steps.
        inner_steps: number of inner steps.
        lr: Adam's learning rate for a.
        phi: φ, how fast q has to fall.

    Example:
        >>> model = nn.Linear(1, 2, bias=False)
        >>> losses = lambda: model(torch.ones(1, 1))[0] ** 2 + 1
        >>> FORUM(2).backward(model, losses, losses).sum()
        tensor(1.)
    """

    scores: Tensor
    mix: Tensor
    epochs: Tensor

    def __init__(
        self,
        n_tasks: int,
        inner_lr: float = 0.1,
        inner_steps: int = 5,
        lr: float = 1e-3,
        phi: float = 0.1,
    ) -> None:
        check_n_tasks(n_tasks)
        check_positive("inner_lr", inner_lr)
        check_positive("inner_steps", inner_steps)
        check_not_negative("phi", phi)
        super().__init__()
        self.inner_lr = inner_lr
        self.inner_steps = inner_steps
        self.phi = phi
        self.adam = Adam(n_tasks, lr)
        self.register_buffer("scores", torch.full((n_tasks,), 1 / n_tasks))
        self.register_buffer("mix", torch.zeros(n_tasks))
        self.register_buffer("epochs", torch.ones((), dtype=torch.int64))

    def backward(self, model: nn.Module, train: Losses, validation: Losses) -> Tensor:
        """Add Σ λ̄ g + ν ∂q/∂θ to the gradients, move the weights, return them."""
        with torch.enable_grad():
            q_scores, q_model, weights = self._distance(model, train)
            rows = self._validation_rows(model, validation)
        q = torch.cat([part.flatten() for part in q_model])
        squared = float(wide(q) @ wide(q) + q_scores @ q_scores)
        G, along = wide(rows) @ wide(rows).T, wide(rows) @ wide(q)
        mix, push = self._mixed(G.cpu(), along.cpu(), squared)
        _add_gradient(model, mix.to(rows) @ rows + push * q)
        self.adam.step(self.scores, push * q_scores, self._present)
        return weights

    def end_epoch(self) -> None:
        """Move on: the average λ̄ follows more slowly."""
        self.epochs += 1

    def _distance(
        self, model: nn.Module, train: Losses
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """∂q/∂a [task], ∂q/∂θ as one tensor per parameter, and the weights [task]."""
        here = trainable(model)
        losses = losses_here(train)
        scores = state_of(self, self.scores, losses)
        w = torch.softmax(scores, dim=0)
        slopes = gradients(w.to(losses) @ losses, here)
        after = trained(model, train, w, self.inner_lr, self.inner_steps)
        with torch.no_grad():
            gain = wide(losses - losses_at(model, after, train))
        return w * (gain - w @ gain), slopes, w.to(losses)

    def _validation_rows(self, model: nn.Module, validation: Losses) -> Tensor:
        here = trainable(model)
        rows = [
            torch.cat([part.flatten() for part in gradients(loss, here, retain_graph=True)])
            for loss in losses_here(validation)
        ]
        return torch.nn.functional.normalize(torch.stack(rows), dim=1, eps=1e-30)

    def _mixed(self, G: Tensor, along: Tensor, squared: float) -> tuple[Tensor, float]:
        """The average mix λ̄ [task] and ν."""
        mix = self._solve(G, along, squared) if squared > 0 else min_norm(G)
        before = state_of(self, self.mix, mix)
        mean = before + int(self.epochs) ** -0.75 * (mix - before)
        self.put_present(self.mix, mean)
        pi = self.phi - along / squared if squared > 0 else torch.zeros_like(along)
        return mean, max(float(mean @ pi), 0.0)

    def _solve(self, G: Tensor, along: Tensor, squared: float) -> Tensor:
        """λ, from the problem in (λ, ν ||∇q||), which has entries of like size."""
        n, length = len(G), squared**0.5
        b = (along / length)[:, None]
        H = 2 * torch.cat([torch.cat([G, b], 1), torch.cat([b.T, torch.ones(1, 1).to(b)], 1)])
        linear = torch.zeros(n + 1, dtype=G.dtype)
        linear[n] = -self.phi * length
        bounds = torch.eye(n + 1, dtype=G.dtype)  # λ ≥ 0, ν ≥ 0
        least = torch.cat([b[:, 0] - self.phi * length, torch.ones(1).to(b)])  # ν - π · λ ≥ 0
        ones = torch.cat([torch.ones(n), torch.zeros(1)]).to(b)
        mix = minimise(H, linear, torch.cat([bounds, least[None]]), ones)[:n].clamp(min=0)
        return mix / mix.sum()


def _add_gradient(model: nn.Module, update: Tensor) -> None:
    """Add the vector `update` to `.grad` of the trainable parameters of `model`."""
    start = 0
    for parameter in model.parameters():
        if parameter.requires_grad:
            part = update[start : start + parameter.numel()].reshape(parameter.shape)
            parameter.grad = part.clone() if parameter.grad is None else parameter.grad + part
            start += parameter.numel()
