"""Gradient vaccine."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_fraction, check_n_tasks
from gradwright.weighting.checks import check_n_present, read_gramian
from gradwright.weighting.solver import unit_diagonal
from gradwright.weighting.visiting import visiting_orders

PARALLEL = 1e-8
"""Smallest sine of a target, so that nothing divides by 0 where gradients always agree."""


class GradVac(GramianWeighting):
    """Like PCGrad, but pairs of tasks are brought to the cosine that they usually have.

    For each task i, starting at g = g_i, and each other task j in random order, with φ the cosine
    of g and g_j: if φ is below the target t_ij, then

        g ← g + ‖g‖ (t √(1-φ²) - φ √(1-t²)) / (‖g_j‖ √(1-t²)) g_j

    which gives them the cosine t. Then t_ij ← (1-β) t_ij + β φ. The targets start at 0.

    Wang, Tsvetkov, Firat and Cao, Gradient Vaccine: Investigating and Improving Multi-task
    Optimization in Massively Multilingual Models, ICLR 2021, algorithm 1,
    https://arxiv.org/abs/2010.05874. β is 0.5 in LibMTL and TorchJD. The Gramian is that of all
    shared parameters ("whole model"); for layers or matrices apart,
    `PerGroup({name: GradVac(n) for name in groups})`.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 has the
    cosine 0 with all others, and the weight 1.

    Args:
        n_tasks: number of tasks; the targets [task, task] are a buffer.
        beta: how much of a target is new in each step.

    Example:
        >>> GradVac(2)(torch.tensor([[1.0, -0.5], [-0.5, 1.0]]))
        tensor([1.5000, 1.5000])
    """

    targets: Tensor

    def __init__(self, n_tasks: int, beta: float = 0.5) -> None:
        check_n_tasks(n_tasks)
        check_fraction("beta", beta)
        super().__init__()
        self.beta = beta
        self.register_buffer("targets", torch.zeros(n_tasks, n_tasks, dtype=torch.float64))

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task], all tasks i side by side; moves the targets."""
        G = read_gramian(gramian)
        columns = self.of_present(self.targets).T.contiguous()
        targets = self.of_present(columns).T.to(G, copy=True)
        check_n_present(self, len(targets), len(G))
        cosines, lengths = unit_diagonal(G)
        cosines = cosines * (G.diagonal() > 0)
        weights = _vaccinated(cosines, targets, self.beta) * lengths[:, None] / lengths
        self.put_present(columns, targets.T)
        self.put_present(self.targets, columns.T)
        return weights.sum(dim=0).to(gramian)


def _vaccinated(cosines: Tensor, targets: Tensor, beta: float) -> Tensor:
    """The coefficients [i, task] of g on gradients of length 1; moves `targets` [i, j] in place."""
    tasks = torch.arange(len(cosines))
    coefficients = torch.eye(len(cosines), dtype=cosines.dtype)
    products = cosines.clone()
    for j in visiting_orders(len(cosines)).T:
        length = (coefficients * products).sum(dim=1).clamp(min=0).sqrt()
        phi = (products[tasks, j] / length.clamp(min=1e-150)).clamp(-1, 1)
        target = targets[tasks, j]
        sine = (1 - target.square()).clamp(min=0).sqrt()
        wanted = target * (1 - phi.square()).sqrt() - phi * sine
        added = torch.where(phi < target, length * wanted / (sine + PARALLEL), 0)
        coefficients[tasks, j] += added
        products += added[:, None] * cosines[j]
        targets[tasks, j] += beta * (phi - target)
    return coefficients
