"""`backward`: from many losses to `.grad`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.amp import GradScaler

from gradwright.engine.approximate.step import backward_approximately
from gradwright.engine.losses import Losses, read_losses
from gradwright.engine.plan.shared import Grouped, Shared
from gradwright.engine.result import Backward
from gradwright.engine.routes.approximation import Approximation
from gradwright.engine.routes.choice import RouteChoice, RouteName, check_route
from gradwright.engine.routes.one_backward import backward_of_sum
from gradwright.engine.step import Step
from gradwright.engine.steps.batches import backward_of_batches, check_other, read_other
from gradwright.engine.steps.groups import backward_of_groups, check_groups
from gradwright.engine.steps.known import backward_of_known
from gradwright.engine.steps.task_gradients import backward_of_tasks
from gradwright.engine.weights.asking import ask_known, check_kind, check_tasks
from gradwright.engine.weights.bases import (
    CrossGramianWeighting,
    GroupWeighting,
    LossWeighting,
    Weighting,
)
from gradwright.engine.weights.heads import Heads, check_heads


@torch.no_grad()
def backward(
    losses: Losses,
    *,
    weighting: Weighting | None = None,
    shared: Shared | Grouped = None,
    other: Sequence[Losses] = (),
    heads: Heads = "paper",
    scaler: GradScaler | None = None,
    route: RouteName | Approximation = "auto",
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
            two or more losses reach. For a `PerGroup` weighting those of each group, by its name.
        other: The losses of further, independent batches, for a method that reads several. Of
            two, the weights are for `losses`; of one, for the mean of both.
        heads: What the gradient of a parameter that is not shared is multiplied by: "weighted"
            (its task's weight), "unweighted", "mean" (1 / number of tasks), "log" (1 / its loss),
            or as the method's paper, LibMTL or TorchJD do.
        scaler: For float16: the losses are scaled, the weights are those of the unscaled ones.
        route: "rows" keeps one gradient per task; "lean" keeps none of them at the cost of one
            backward more. By default rows, while they fit `memory`. `LastBlock`, `Features` and
            `Sketch` (of `gradwright.engine`) approximate the Gramian at a lower cost.
        memory: Bytes that the rows may take.
        retain_graph: Keep what the graph saved. By default it is freed as early as can be.
        check_finite: Refuse losses that are NaN or infinite (on a GPU this waits for them).

    Returns:
        The losses [task], the weights [task], the Gramian [task, task] where one was read, and
        which route ran.

    Raises:
        LossError: There is no loss, or one is no scalar, has no graph, is not finite or repeated.
        SharedError: `shared` holds what no loss reaches, or the losses share nothing.
        TaskMismatch: The weighting was made for another number of tasks, or `other` has others.
        ValueError: `heads` is none of the words above, or does not suit the weighting; `other`
            has too few or too many batches for it.

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
    check_route(route, weighting)
    check_other(other, weighting)
    check_groups(shared, weighting)
    scale = _scale(scaler, read.values)
    if isinstance(shared, Mapping):
        assert isinstance(weighting, GroupWeighting)  # see `check_groups`
        step = Step(read, None, heads, scale, retain_graph)
        return backward_of_groups(step, weighting, {n: list(group) for n, group in shared.items()})
    step = Step(read, None if shared is None else list(shared), heads, scale, retain_graph)
    if weighting is None or isinstance(weighting, LossWeighting):
        return backward_of_sum(step, weighting)
    known = ask_known(weighting, read)
    if known is not None:
        return backward_of_known(step, weighting, known)
    if isinstance(weighting, CrossGramianWeighting):
        others = read_other(read, other, weighting, check_finite=check_finite)
        return backward_of_batches(step, [replace(step, read=o) for o in others], weighting)
    if isinstance(route, Approximation):
        return backward_approximately(step, weighting, route)
    return backward_of_tasks(step, weighting, RouteChoice(route, memory, retain_graph))


def _scale(scaler: GradScaler | None, like: Tensor) -> float:
    """The scaler's factor; asking it to scale something also prepares it for its `step`."""
    return 1.0 if scaler is None else float(scaler.scale(like.new_ones(())))
