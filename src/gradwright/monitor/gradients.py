"""The inner products of the tasks' gradients in each layer, read from a graph that is kept."""

from collections.abc import Collection, Mapping, Sequence
from math import nan

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from gradwright.engine.basics.inner_products import gramian_of
from gradwright.engine.basics.pull import edge_of
from gradwright.engine.errors import SharedError
from gradwright.engine.losses import TaskLosses
from gradwright.engine.plan.stages import plan_of
from gradwright.engine.plan.unstack import starts_of
from gradwright.engine.routes.reentrant import has_reentrant, reentrant_rows
from gradwright.engine.routes.rows import Rows, rows_of


def layer_gramians(losses: TaskLosses, layers: Mapping[str, Sequence[Tensor]]) -> dict[str, Tensor]:
    """The Gramian [task, task] of each layer, float64, on the CPU, by one backward per loss.

    NaN for a task that is absent, whose loss does not reach the layer, or whose gradient there is
    not finite.

    Raises:
        SharedError: No loss reaches any layer.
    """
    edges = {
        name: [edge_of(one) for one in parameters if one.requires_grad]
        for name, parameters in layers.items()
    }
    wanted = {edge for of_layer in edges.values() for edge in of_layer}
    rows = _rows(losses, wanted)
    if wanted.isdisjoint(rows):
        raise SharedError(
            f"no loss reaches any of the {len(layers)} layers to watch, among them "
            f"{next(iter(layers))!r}: give the model that the losses are computed with."
        )
    return {
        name: _gramian(losses, [rows[edge] for edge in of_layer if edge in rows])
        for name, of_layer in edges.items()
    }


def _rows(losses: TaskLosses, wanted: Collection[GradientEdge]) -> Rows:
    plan = plan_of(starts_of(losses.tensors, n_tasks=len(losses.names), keep=True))
    with torch.no_grad():
        if has_reentrant(plan):
            return reentrant_rows(plan, keep=True)[0]
        return rows_of(plan.only(wanted), keep=True)


def _gramian(losses: TaskLosses, rows: Sequence[Sequence[Tensor | None]]) -> Tensor:
    present = range(len(losses.tensors))
    gramian = gramian_of(rows, len(present))
    missing = ~gramian.diagonal().isfinite()
    missing |= torch.tensor([all(row[task] is None for row in rows) for task in present])
    gramian[missing] = nan
    gramian[:, missing] = nan
    return losses.spread(gramian, absent=nan)
