"""The gradients of several losses over a window, and one mean loss per task made from them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gradwright.engine.losses import read_losses
from gradwright.engine.plan.stages import plan_of
from gradwright.engine.plan.unstack import starts_of
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import rows_of


class Rows:
    """For each leaf the gradient of each task there, summed over micro-batches.

    Args:
        tasks: Their names.
    """

    def __init__(self, tasks: Sequence[str]) -> None:
        self._of: dict[str, dict[int, Tensor]] = {task: {} for task in tasks}
        self._leaves: dict[int, Tensor] = {}

    def add(self, losses: Mapping[str, Tensor | None], scale: float) -> None:
        """Add the gradients of a micro-batch, `scale` times; one backward per task.

        Raises:
            LossError: there is no loss, or one has no graph.
        """
        read = read_losses(losses, check_finite=False)
        plan = plan_of(starts_of(read.tensors, scale, n_tasks=len(read.names)))
        if has_reentrant(plan):
            rows, plan = reentrant_rows(plan, keep=False)
        else:
            rows = rows_of(plan, keep=False)
        leaves = plan.leaves
        for edge, of_tasks in rows.items():
            leaf = leaves[edge]
            self._leaves[id(leaf)] = leaf
            for task, row in zip(read.present, of_tasks, strict=True):
                if row is not None:
                    sums = self._of[read.names[task]]
                    sums[id(leaf)] = _sum(sums.get(id(leaf)), row)

    def mean_losses(
        self, means: Mapping[str, Tensor | None], factors: Mapping[str, float]
    ) -> dict[str, Tensor | None]:
        """One scalar per task, whose value is its mean and whose gradients are factor × row."""
        return {
            task: None if mean is None else self._mean_loss(mean, self._of[task], factors[task])
            for task, mean in means.items()
        }

    @contextmanager
    def hooks_have_run(self) -> Iterator[None]:
        """Within the block the leaves have no hooks: those have seen the micro-batches' rows."""
        hooked = [leaf._backward_hooks for leaf in self._leaves.values() if leaf._backward_hooks]
        before: list[dict[int, Any]] = [dict(hooks) for hooks in hooked]
        for hooks in hooked:
            hooks.clear()
        try:
            yield
        finally:
            for hooks, those in zip(hooked, before, strict=True):
                hooks.update(those)

    def _mean_loss(self, mean: Tensor, rows: dict[int, Tensor], factor: float) -> Tensor:
        leaves = [self._leaves[place] for place in rows]
        scaled = [row * factor for row in rows.values()]
        with torch.enable_grad():
            result: Tensor = _MeanLoss.apply(mean, scaled, *leaves)  # type: ignore[no-untyped-call]
        return result


class _MeanLoss(torch.autograd.Function):
    """A value whose gradients at the leaves are known."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, rows: list[Tensor], *leaves: Tensor) -> Tensor:
        ctx.rows = rows
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        scale = float(gradient)
        rows = ctx.rows if scale == 1 else [row * scale for row in ctx.rows]
        return None, None, *rows


def _sum(before: Tensor | None, row: Tensor) -> Tensor:
    if before is None:
        return row
    return row + before if before.is_sparse and not row.is_sparse else before + row
