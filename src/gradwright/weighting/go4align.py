"""Grouping tasks by how they progress, and one weight per group."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import LossWeighting
from gradwright.weighting.arguments import check_n_tasks, check_not_negative
from gradwright.weighting.share import put_share, share_of
from gradwright.weighting.values import positive


class GO4Align(LossWeighting):
    """Tasks that progress alike form a group, and all of a group get its mean weight.

    p ← p exp(-η l), scaled to sum 1; v_k = p_k Σl / l_k. The values v are cut into groups with
    the least squared distances to their means (1-D k-means); w_k is the mean of k's group.

    Losses need to be positive.

    Shen, Wang, Xiao, Van Noord and Worring, GO4Align: Group Optimization for Multi-Task Alignment,
    NeurIPS 2024, https://arxiv.org/abs/2404.06486. Formulas as in the official code, where the
    k-means starts at random; ours finds the best grouping, so equal losses give equal weights in
    every run.

    Called with losses [task], returns weights [task] > 0.

    Args:
        n_tasks: number of tasks.
        n_groups: number of groups; where a step has fewer tasks, each is a group.
        step_size: η, how fast p turns to the tasks with small losses.

    Example:
        >>> GO4Align(3, n_groups=2)(torch.tensor([1.0, 1.1, 4.0]))
        tensor([1.9411, 1.9411, 0.5082])
    """

    shares: Tensor

    def __init__(self, n_tasks: int, n_groups: int = 2, step_size: float = 1e-4) -> None:
        check_n_tasks(n_tasks)
        check_not_negative("step_size", step_size)
        if n_groups < 1:
            raise ValueError(f"`n_groups` needs to be 1 or more: got {n_groups}.")
        super().__init__()
        self.n_groups = n_groups
        self.step_size = step_size
        self.register_buffer("shares", torch.full((n_tasks,), 1 / n_tasks))

    def forward(self, losses: Tensor) -> Tensor:
        """Weights [task]; moves the shares p."""
        values = positive(self, losses)
        p = share_of(self, self.shares, losses)
        # softmax of the logarithms: exp(-η l) alone would underflow for huge losses
        p = torch.softmax(p.log() - self.step_size * values, dim=0)
        put_share(self, self.shares, p)
        return group_means(p * values.sum() / values, self.n_groups).to(losses)


def group_means(values: Tensor, n_groups: int) -> Tensor:
    """Each value [n] replaced by the mean of its group, in the best 1-D k-means grouping.

    Groups of sorted values are runs, so the cheapest way to cut the first j values into m runs is
    the cheapest way to cut the first i < j into m - 1, plus one run.
    """
    ordered, order = values.cpu().sort()
    cost = _run_costs(ordered)
    best = cost[0]
    cuts = []
    for _ in range(1, min(n_groups, len(values))):
        best, cut = (best[:, None] + cost).min(dim=0)
        cuts.append(cut)
    means = torch.empty_like(ordered)
    end = len(ordered)
    for cut in [*reversed(cuts), torch.zeros(end + 1, dtype=torch.int64)]:
        start = int(cut[end])
        means[order[start:end]] = ordered[start:end].mean()
        end = start
    return means.to(values.device)


def _run_costs(ordered: Tensor) -> Tensor:
    """Squared distances to the mean of the values from i to before j: [n + 1, n + 1]."""
    n = len(ordered)
    around = ordered - ordered.mean()
    sums = torch.cat([around.new_zeros(1), around.cumsum(0)])
    squares = torch.cat([around.new_zeros(1), around.square().cumsum(0)])
    i, j = torch.meshgrid(torch.arange(n + 1), torch.arange(n + 1), indexing="ij")
    length = (j - i).clamp(min=1)
    cost = squares[j] - squares[i] - (sums[j] - sums[i]) ** 2 / length
    return torch.where(j > i, cost, torch.inf)
