"""Mean of the tasks' gradients without the extremes."""

from collections.abc import Sequence

from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting
from gradwright.weighting.arguments import check_not_negative


class TrimmedMean(JacobianWeighting):
    """Coordinate by coordinate, drops the `trim` largest and smallest entries and averages.

    Yin, Chen, Kannan and Bartlett, Byzantine-Robust Distributed Learning: Towards Optimal
    Statistical Rates, ICML 2018, definition 2, https://arxiv.org/abs/1803.01498. As in TorchJD.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter. A step needs more than 2 · `trim` tasks.

    Args:
        trim: how many entries to drop at each end; 0 is the mean.

    Example:
        >>> import torch
        >>> TrimmedMean(trim=1)([torch.tensor([[1.0], [2.0], [90.0], [3.0]])], torch.ones(4))
        [tensor([2.5000])]
    """

    def __init__(self, trim: int = 1) -> None:
        check_not_negative("trim", trim)
        super().__init__()
        self.trim = trim

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        n, t = len(losses), self.trim
        if n <= 2 * t:
            raise ValueError(
                f"`TrimmedMean(trim={t})` drops {2 * t} entries, so it needs {2 * t + 1} or more "
                f"tasks: got {n}. Use a smaller `trim`."
            )
        return [rows.sort(dim=0).values[t : n - t].mean(0) for rows in jacobian]
