"""Running sums over all recorded steps of one layer: their size does not grow with time."""

from dataclasses import dataclass
from math import inf, log

import torch
from torch import Tensor

from gradwright.monitor.snapshot import above_diagonal, cosines_of, norms_of, spread_of


@dataclass(slots=True)
class Summary:
    """Sums for each pair of tasks [task, task], and for the layer as a whole."""

    counts: Tensor  # steps at which both tasks had a gradient that is not zero
    cosines: Tensor  # Σ cosine
    least: Tensor  # the least cosine; inf where there was none
    negative: Tensor  # steps with a cosine below 0
    log_ratios: Tensor  # Σ log(norm of row / norm of column)
    steps: int = 0  # with a cosine of any pair
    conflicts: int = 0  # of these, with a cosine below 0
    log_spreads: float = 0.0  # Σ log(largest norm / smallest norm)

    def add(self, gramian: Tensor) -> None:
        """Take in the Gramian [task, task] of one more step."""
        cosines = cosines_of(gramian)
        known = ~cosines.isnan()
        norms = norms_of(gramian)
        self.counts += known
        self.cosines += cosines.nan_to_num(0.0)
        self.least = torch.minimum(self.least, cosines.nan_to_num(inf))
        self.negative += cosines < 0
        logs = norms.log()
        self.log_ratios += torch.where(known, logs[:, None] - logs, 0.0)
        if bool(above_diagonal(known).any()):
            spread = spread_of(gramian)
            self.steps += 1
            self.conflicts += spread.least_cosine < 0
            self.log_spreads += log(spread.norm_ratio)


def empty_summary(n_tasks: int) -> Summary:
    """No step yet."""
    zeros = torch.zeros(n_tasks, n_tasks, dtype=torch.float64)
    return Summary(
        counts=zeros.clone(),
        cosines=zeros.clone(),
        least=torch.full_like(zeros, inf),
        negative=zeros.clone(),
        log_ratios=zeros.clone(),
    )
