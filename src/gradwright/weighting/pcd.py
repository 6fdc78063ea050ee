"""Priority-constrained descent."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_fraction, check_n_tasks, check_not_negative
from gradwright.weighting.checks import check_n_present, read_gramian
from gradwright.weighting.solver import minimise_nonnegative, precision, unit_diagonal


class PCD(GramianWeighting):
    """The first task's gradient, bent as little as makes all others progress a little, too.

    With the gradients scaled by s_k = 1 / √(v_k + ε), v_k the mean of ‖g_k‖² over the steps, as
    Adam takes it, d = argmin ‖d - g₁‖² subject to g_k·d ≥ τ_k ‖g_k‖² for k = 2, 3, …; the update is
    d, made as long as the first gradient is. If nothing fulfils all constraints, or the first
    gradient is 0, it is the first gradient. It is 0 where d is.

    Not All Objectives Are Born Equal: Priority-Constrained Descent for Hierarchical
    Multi-Objective Optimization, TMLR 2026, https://arxiv.org/abs/2606.29521, as TorchJD states it.
    We solve its quadratic program exactly, as TorchJD does; the official code tries all sets.

    Called with a Gramian [task, task], returns weights [task]. In a batch without the first task
    all are 0.

    Args:
        n_tasks: number of tasks; the means of the squared lengths [task] are a buffer.
        tau: the progress of each other task, in what its own scaled gradient would give.
        beta: how much of a mean is kept in each step.
        eps: added to the means.

    Example:
        >>> PCD(2, tau=0.0)(torch.tensor([[1.0, -0.6], [-0.6, 1.0]]))
        tensor([1.2500, 0.7500])
    """

    mean_squares: Tensor
    steps: Tensor

    def __init__(
        self,
        n_tasks: int,
        tau: float | Sequence[float] | Tensor = 0.02,
        beta: float = 0.999,
        eps: float = 1e-8,
    ) -> None:
        check_n_tasks(n_tasks)
        check_fraction("beta", beta)
        check_not_negative("eps", eps)
        super().__init__()
        self.tau = _progress(tau, n_tasks)
        self.beta = beta
        self.eps = eps
        self.register_buffer("mean_squares", torch.zeros(n_tasks, dtype=torch.float64))
        self.register_buffer("steps", torch.zeros(n_tasks, dtype=torch.float64))

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task]; moves the means."""
        G = read_gramian(gramian)
        tasks = self.of_present(torch.arange(len(self.tau)))
        check_n_present(self, len(tasks), len(G))
        scales = self._scales(G.diagonal())
        weights = torch.zeros(len(G), dtype=G.dtype)
        first = tasks == 0
        if not first.any() or not G[first, first] > 0:
            return weights.to(gramian)
        scaled = G * scales.outer(scales)
        weights[first] = 1
        weights[~first] = _multipliers(scaled, first, self.of_present(self.tau)[~first])
        squared = weights @ scaled @ weights
        longest = weights @ scaled.diagonal().sqrt()
        if squared <= precision(gramian) * longest.square():
            return torch.zeros_like(gramian.diagonal())
        return (weights * scales * (G[first, first] / squared).sqrt()).to(gramian)

    def _scales(self, squares: Tensor) -> Tensor:
        """1 / √(v + ε) [task], with the means v after this step."""
        mean = self.of_present(self.mean_squares).to(squares)
        steps = self.of_present(self.steps).to(squares) + 1
        mean = self.beta * mean + (1 - self.beta) * squares
        self.put_present(self.mean_squares, mean)
        self.put_present(self.steps, steps)
        return (mean / (1 - self.beta**steps) + self.eps).rsqrt().nan_to_num(posinf=0)


def _progress(tau: float | Sequence[float] | Tensor, n_tasks: int) -> Tensor:
    """τ [task], 0 for the first."""
    others = torch.as_tensor(tau, dtype=torch.float64).detach().cpu()
    if others.ndim > 1 or not ((others >= 0) & (others <= 1)).all():
        raise ValueError(f"`tau` needs to be a number from 0 to 1, or one per task: got {tau}.")
    if others.ndim == 1 and len(others) != n_tasks - 1:
        raise ValueError(
            f"`tau` needs one number per task but the first, {n_tasks - 1}: got {len(others)}."
        )
    return torch.cat([torch.zeros(1, dtype=torch.float64), others.expand(n_tasks - 1)])


def _multipliers(G: Tensor, first: Tensor, tau: Tensor) -> Tensor:
    """What to add of each other gradient to the first; 0 if the constraints exclude each other."""
    if len(G) == 1:
        return tau  # no other task
    cosines, lengths = unit_diagonal(G[~first][:, ~first])
    missing = tau * lengths - G[~first, first] / lengths
    added = minimise_nonnegative(cosines, -missing[None]).x[0]
    if (missing - cosines @ added).amax() > 1e-6 * missing.abs().amax():
        return torch.zeros_like(lengths)
    return added / lengths
