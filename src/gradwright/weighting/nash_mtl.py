"""Multi-task learning as a bargaining game."""

from torch import Tensor

from gradwright.engine.weights.bases import GramianWeighting
from gradwright.weighting.arguments import check_n_tasks, check_positive
from gradwright.weighting.checks import check_n_present, read_gramian
from gradwright.weighting.kept_weights import KeptWeights
from gradwright.weighting.solver import fair_share, precision


class NashMTL(GramianWeighting):
    """The Nash bargaining solution: the product of what the tasks gain is as large as can be.

    w > 0 with w_k (G w)_k = 1 for all k. Then ‖Jᵀ w‖ = √(number of tasks), whatever the scale of
    the gradients.

    Navon, Shamsian, Achituve, Maron, Kawaguchi, Chechik and Fetaya, Multi-Task Learning as a
    Bargaining Game, ICML 2022, claim 3.1 and algorithm 1, https://arxiv.org/abs/2202.01017.
    The paper has no `max_norm`; its code, LibMTL and TorchJD clip the update to a length of 1,
    which by the above makes every update that long. As in TorchJD, clipping shortens the weights,
    so heads that are weighted are shortened too; in the other two they are not. The peers' solver
    stops at errors up to 1e-2 and needs a cone solver; ours is exact to 1e-10.

    Called with a Gramian [task, task], returns weights [task]. A task whose gradient is 0 cannot
    bargain and has the weight 0. Where some mean of the gradients is 0 there is no solution; the
    weights are then large and balanced as well as could be, but finite.

    Args:
        n_tasks: number of tasks; only needed with `update_every` above 1, when the last weights
            are kept.
        max_norm: longest update to allow, if any.
        update_every: solve in one of this many steps, and use its weights in the others, which
            `gradwright.backward` then makes with one backward.

    Example:
        >>> import torch
        >>> NashMTL()(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
        tensor([0.5000, 1.0000])
    """

    paper_heads = "weighted"
    libmtl_heads = "weighted"

    def __init__(
        self, n_tasks: int | None = None, max_norm: float | None = None, update_every: int = 1
    ) -> None:
        _check_kept(n_tasks, update_every)
        if max_norm is not None:
            check_positive("max_norm", max_norm)
        super().__init__()
        self.max_norm = max_norm
        self.update_every = update_every
        self.n_tasks = n_tasks if update_every > 1 else None
        self.kept = KeptWeights(n_tasks or 0, update_every) if update_every > 1 else None

    def known_weights(self, losses: Tensor) -> Tensor | None:
        """Weights [task] of an earlier step, where they still serve."""
        return None if self.kept is None else self.kept.use(self)

    def forward(self, gramian: Tensor) -> Tensor:
        """Weights [task], new or those of an earlier step."""
        G = read_gramian(gramian)
        if self.kept is None:
            return self._clipped(G, fair_share(G, 1.0, precision(gramian))).to(gramian)
        check_n_present(self, len(self.of_present(self.kept.weights)), len(G))
        weights = self.kept.use(self)
        if weights is None:
            weights = fair_share(G, 1.0, precision(gramian))
            self.kept.renew(self, weights, known=weights != 0)  # 0: it could not bargain
        return self._clipped(G, weights.to(G)).to(gramian)

    def _clipped(self, G: Tensor, weights: Tensor) -> Tensor:
        """`weights`, shortened to an update of at most `max_norm`."""
        length = float((weights @ G @ weights).clamp(min=0).sqrt())
        if self.max_norm is None or length <= self.max_norm:
            return weights
        return weights * (self.max_norm / length)


def _check_kept(n_tasks: int | None, update_every: int) -> None:
    if update_every < 1:
        raise ValueError(f"`update_every` needs to be 1 or more: got {update_every}.")
    if n_tasks is not None:
        check_n_tasks(n_tasks)
    elif update_every > 1:
        raise ValueError(
            f"`update_every={update_every}` keeps weights between steps, so it needs `n_tasks`: "
            f"NashMTL(n_tasks=3, update_every={update_every})."
        )
