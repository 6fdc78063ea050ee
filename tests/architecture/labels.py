"""Labels for the small models, and the losses that go with them: numbers, classes, yes and no."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from gradwright.architecture import AITM, ESMM, Architecture, DSelectK

Labels = dict[str, Tensor]
"""By task: numbers [example, 1], classes [example], or yes and no [example, 1]."""


def labels_of(made: Architecture, size: int, seed: int) -> Labels:
    """What to learn for the tasks: yes and no in steps, else a number and then classes.

    They are made for conflict: the first loss is large; the first step is rarer than a model says
    that knows nothing, and the last one less rare.
    """
    draw = torch.Generator().manual_seed(seed)
    kind = next(made.parameters()).dtype
    noise = torch.rand(size, 1, generator=draw).to(kind)
    if isinstance(made, ESMM | AITM):  # each step happens to fewer than the one before
        rank = noise.argsort(dim=0).argsort(dim=0) / size
        return {task: (rank < 0.45 - 0.05 * n).to(kind) for n, task in enumerate(made.tasks)}
    return {
        task: 4 * noise if width == 1 else torch.randint(width, (size,), generator=draw)
        for width, task in enumerate(made.tasks, 1)
    }


def losses_of(
    made: Architecture,
    outputs: Mapping[str, Tensor],
    labels: Mapping[str, Tensor],
    class_weights: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """The loss of each task that has labels."""
    weights = class_weights or {}
    return {
        task: _loss(made, outputs[task], target, weights.get(task))
        for task, target in labels.items()
    }


def with_terms(
    made: Architecture, inputs: Tensor, outputs: dict[str, Tensor], losses: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The losses of all tasks, with the architecture's own terms."""
    terms: dict[str, Tensor] = {}
    if isinstance(made, DSelectK):
        terms = made.regularization(inputs)
    if isinstance(made, AITM):
        terms = made.regularization(outputs)
    return {task: loss + terms.get(task, 0) for task, loss in losses.items()}


def spread(losses: Mapping[str, Tensor], tasks: Iterable[str]) -> dict[str, Tensor | None]:
    """The losses of all tasks, in order, None for those that have none."""
    return {task: losses.get(task) for task in tasks}


def _loss(made: Architecture, output: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    if isinstance(made, ESMM | AITM):
        return binary_cross_entropy_with_logits(output, target, pos_weight=weight)
    if target.ndim == 1:
        return cross_entropy(output, target, weight=weight)
    return mse_loss(output, target)
