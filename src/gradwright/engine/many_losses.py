"""`backward`: from many losses to `.grad`."""

from collections.abc import Iterable
from typing import get_args

import torch
from torch import Tensor
from torch.amp import GradScaler

from gradwright.engine.losses import Losses, read_losses
from gradwright.engine.one_backward import backward_of_sum
from gradwright.engine.result import Backward
from gradwright.engine.routes import RouteChoice, RouteName
from gradwright.engine.shared import shared_leaves
from gradwright.engine.stages import plan_of
from gradwright.engine.task_gradients import backward_of_tasks
from gradwright.engine.unstack import starts_of
from gradwright.engine.weighting import LossWeighting, Weighting
from gradwright.engine.weights import Heads, check_heads, check_kind, check_tasks


@torch.no_grad()
def backward(
    losses: Losses,
    *,
    weighting: Weighting | None = None,
    shared: Iterable[Tensor] | None = None,
    heads: Heads = "paper",
    scaler: GradScaler | None = None,
    route: RouteName = "auto",
    memory: int = 2**30,
    retain_graph: bool = False,
    check_finite: bool = True,
) -> Backward:
    """Compute the gradients of many losses and add them to `.grad`, as `Tensor.backward` does.

    Args:
        losses: One scalar per task, by name or in order, or one tensor [task]. None for a task
            that is absent from this batch.
        weighting: The method that says how much each loss counts; their plain sum by default.
        shared: The parameters where the tasks meet. By default what the graph says: those that
            two or more losses reach.
        heads: What the gradient of a parameter that is not shared is multiplied by: "weighted"
            (its task's weight), "unweighted", "mean" (1 / number of tasks), or as the method's
            paper, LibMTL or TorchJD do.
        scaler: For float16: the losses are scaled, the weights are those of the unscaled ones.
        route: "rows" keeps one gradient per task; "lean" keeps none of them at the cost of one
            backward more. By default rows, while they fit `memory`.
        memory: Bytes that the rows may take.
        retain_graph: Keep what the graph saved. By default it is freed as early as can be.
        check_finite: Refuse losses that are NaN or infinite (on a GPU this waits for them).

    Returns:
        The losses [task], the weights [task], the Gramian [task, task] where one was read, and
        which route ran.

    Raises:
        LossError: There is no loss, or one is no scalar, has no graph, is not finite or repeated.
        SharedError: `shared` holds what no loss reaches, or the losses share nothing.
        TaskMismatch: The weighting was made for another number of tasks.
        ValueError: `heads` is none of the words above, or does not suit the weighting.

    Nothing is written to any `.grad` when an error is raised.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.weighting import PCGrad
        >>> trunk, heads = torch.nn.Linear(4, 3), [torch.nn.Linear(3, 1) for _ in range(2)]
        >>> features = trunk(torch.ones(8, 4))
        >>> losses = {"a": heads[0](features).mean(), "b": heads[1](features).pow(2).mean()}
        >>> step = gw.backward(losses, weighting=PCGrad())
        >>> step.tasks, step.weights.shape, step.gramian.shape
        (('a', 'b'), torch.Size([2]), torch.Size([2, 2]))
    """
    read = read_losses(losses, check_finite=check_finite)
    if weighting is not None:
        check_kind(weighting)
        check_tasks(weighting, read)
    check_heads(heads, weighting)
    if route not in get_args(RouteName):
        raise ValueError(f"`route` is {route!r}: it must be 'auto', 'rows' or 'lean'.")
    scale = _scale(scaler, read.values)
    if weighting is None or isinstance(weighting, LossWeighting):
        if shared is not None:
            shared_leaves(
                plan_of(starts_of(read.tensors, n_tasks=len(read.names), keep=True)), shared
            )
        return backward_of_sum(read, weighting, scale, retain_graph)
    return backward_of_tasks(
        read, weighting, shared, heads, scale, RouteChoice(route, memory, retain_graph)
    )


def _scale(scaler: GradScaler | None, like: Tensor) -> float:
    """The scaler's factor; asking it to scale something also prepares it for its `step`."""
    return 1.0 if scaler is None else float(scaler.scale(like.new_ones(())))
