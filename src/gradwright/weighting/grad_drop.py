"""Gradient sign dropout."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from gradwright.engine.weights.bases import JacobianWeighting
from gradwright.weighting.arguments import finite_vector
from gradwright.weighting.rows import scaled
from gradwright.weighting.values import state_of


class GradDrop(JacobianWeighting):
    """Each coordinate of the update takes the tasks of one sign only, drawn at random.

    Per coordinate: purity P = (1 + Σ g / Σ |g|) / 2; with chance f(P) the positive entries are
    kept, else the negative ones. Of what is dropped, task k keeps the part `leak[k]`. Draws from
    torch's global generator.

    Chen, Ngiam, Huang, Luong, Kretzschmar, Chai and Anguelov, Just Pick a Sign: Optimizing Deep
    Multitask Models with Gradient Sign Dropout, NeurIPS 2020, algorithm 1, lines 10 to 15,
    https://arxiv.org/abs/2010.06808, on the gradients of the parameters as in TorchJD. The paper
    and LibMTL drop at a layer's output, summed over the batch; give the features as `shared` for
    that.

    Called with a Jacobian, one tensor [task, *shape] per parameter, and losses [task]; returns the
    update, one tensor [*shape] per parameter.

    Args:
        leak: in [0, 1], one number for all tasks or one per task.
        purity: f, an increasing function of P from [0, 1] to [0, 1]; by default f(P) = P.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> GradDrop()([torch.tensor([[1.0, -2.0], [3.0, 4.0]])], torch.ones(2))
        [tensor([ 4., -2.])]
    """

    leak: Tensor

    def __init__(
        self,
        leak: float | Sequence[float] | Tensor = 0.0,
        purity: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        given = torch.as_tensor(leak, dtype=torch.get_default_dtype())
        self._one_for_all = given.dim() == 0
        vector = finite_vector("leak", given.reshape(1) if given.dim() == 0 else given)
        if not bool(((vector >= 0) & (vector <= 1)).all()):
            raise ValueError(f"`leak` needs numbers from 0 to 1: got {leak}.")
        super().__init__()
        self.purity = purity
        self.register_buffer("leak", vector)

    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        """The update, one tensor [*shape] per parameter."""
        leak = self.leak.expand(len(losses)) if self._one_for_all else self._leak_of(losses)
        return [self._drop(rows, leak) for rows in jacobian]

    def _leak_of(self, losses: Tensor) -> Tensor:
        return state_of(self, self.leak, losses)

    def _drop(self, rows: Tensor, leak: Tensor) -> Tensor:
        size = rows.abs().sum(0)
        balance = rows.sum(0) / torch.where(size > 0, size, 1.0)  # 0 where all tasks are 0
        P = (1 + balance) / 2
        chance = P if self.purity is None else self.purity(P)
        U = torch.rand_like(P)
        kept = torch.where(rows > 0, chance > U, chance < U)
        return torch.where(kept, rows, scaled(rows, leak)).sum(0).to(rows.dtype)
