"""`check_window`: a window as accumulated, and once more in one piece."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from gradwright.graph import reachable
from gradwright.loops.accumulation.batch_norm import batch_norms
from gradwright.loops.accumulation.counts import Count, read_count
from gradwright.loops.accumulation.distributed.wrapped import is_wrapped
from gradwright.loops.accumulation.given import read_loss
from gradwright.loops.accumulation.one_loss import OneLoss
from gradwright.loops.accumulation.parameters import Trained, trained_by
from gradwright.loops.accumulation.self_check.compared import Gradients, compared
from gradwright.loops.accumulation.self_check.joined import joined
from gradwright.loops.accumulation.self_check.report import WindowReport
from gradwright.loops.accumulation.self_check.untouched import untouched
from gradwright.loops.errors import WindowError

Batch = TypeVar("Batch")
Step = Callable[[Batch], tuple[Tensor, Count]]
"""From a batch to the sum of its losses, and how many terms the sum has."""


def check_window(
    step: Step[Batch],
    micro_batches: Sequence[Batch],
    model: nn.Module,
    *,
    whole: Callable[[Sequence[Batch]], Batch] | None = None,
) -> WindowReport:
    """Run one window as accumulated and in one piece, and compare the gradients.

    Afterwards `.grad`, random numbers and the model's buffers are what they were before.

    Args:
        step: What a training step does with a micro-batch before its backward: it returns the SUM
            of the losses, and how many terms the sum has.
        micro_batches: Those of one window.
        model: The module that is trained; of DDP the module inside.
        whole: Makes one batch of several. By default tensors are joined along their first
            dimension. Where that does not go (shapes differ, there are numbers among them), the
            losses of the micro-batches are added up in one graph, which BatchNorm does not change.

    Raises:
        WindowError: there is no micro-batch, the model is in DDP or FSDP, or what `step` returns
            is no loss and count.

    Example:
        >>> import torch, gradwright as gw
        >>> from gradwright.loops import check_window
        >>> model = torch.nn.Linear(3, 1)
        >>> def step(x):
        ...     return model(x).square().sum(), len(x)
        >>> report = check_window(step, [torch.ones(2, 3), torch.ones(5, 3)], model)
        >>> report.is_exact, report.gives_a_mean
        (True, False)
    """
    if not micro_batches:
        raise WindowError("`micro_batches` is empty: give those of one window.")
    if is_wrapped(model):
        raise WindowError("`model` is in DDP or FSDP: check the module inside, in one process.")
    trained = trained_by(model)
    one = joined(micro_batches) if whole is None else whole(micro_batches)
    pieces = micro_batches if one is None else [one]
    with untouched(model):
        norms = _accumulate(step, micro_batches, trained)
        accumulated = _gradients(trained)
    with untouched(model):
        _backward_of_all(step, pieces)
        in_one = _gradients(trained)
    with untouched(model):
        mean = _gives_a_mean(step, micro_batches[0])
    return WindowReport(
        compared(trained, accumulated, in_one),
        in_one_batch=one is not None,
        gives_a_mean=mean,
        batch_norms=tuple(norms),
        dropouts=tuple(_dropouts(model)),
    )


def _accumulate(step: Step[Batch], micro_batches: Sequence[Batch], trained: Trained) -> list[str]:
    """Run the window; the BatchNorms that its first graph has."""
    norms: list[str] = []
    window: OneLoss | None = None
    for batch in micro_batches:
        loss, count = _run(step, batch)
        if window is None:
            assert loss.grad_fn is not None
            norms = batch_norms(reachable([loss.grad_fn]), trained)
            window = OneLoss(trained, count * len(micro_batches), None)
        window.backward(loss, count, Tensor.backward)
    assert window is not None
    window.close(len(micro_batches))
    return norms


def _backward_of_all(step: Step[Batch], pieces: Sequence[Batch]) -> None:
    found = [_run(step, piece) for piece in pieces]
    total = sum(float(count) for _, count in found)
    torch.stack([loss.reshape(()) for loss, _ in found]).sum().div(total).backward()


def _gives_a_mean(step: Step[Batch], batch: Batch) -> bool | None:
    """Whether the loss of a batch that is given twice is that of the batch, not twice as large."""
    twice = joined([batch, batch])
    if twice is None:
        return None
    with torch.no_grad():
        losses = [float(step(given)[0]) for given in (batch, twice)]
    return None if losses[0] == 0 else abs(losses[1] / losses[0]) < 1.5


def _run(step: Step[Batch], batch: Batch) -> tuple[Tensor, Count]:
    returned: object = step(batch)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise WindowError(
            f"`step` returned a {type(returned).__name__}: it must return the sum of the losses "
            "and how many terms it has, `return loss_sum, count`."
        )
    return read_loss(returned[0]), read_count(returned[1])


def _gradients(trained: Trained) -> Gradients:
    return [p.grad if p.grad is None else p.grad.detach().clone() for p in trained.tensors]


def _dropouts(model: nn.Module) -> list[str]:
    return [
        repr(name)
        for name, module in model.named_modules()
        if isinstance(module, _DropoutNd) and module.training and module.p > 0
    ]
