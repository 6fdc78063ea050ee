"""Entire space multi-task model."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from gradwright.architecture.base import Architecture
from gradwright.architecture.making import check_module
from gradwright.architecture.mixture import check_same_shape


class ESMM(Architecture):
    """Steps that follow one another, such as click and conversion, learned on all examples.

    Head k says how probable step k is once step k - 1 happened: p(click), p(conversion | click).
    The output of task k is for both together: p_k = p_{k-1} · σ(head_k(bottom(x))), so that
    every loss is over all examples, not only those that were clicked.

    Ma, Zhao, Huang, Wang, Hu, Zhu and Gai, Entire Space Multi-Task Model: An Effective Approach for
    Estimating Post-Click Conversion Rate, SIGIR 2018, equation 1,
    https://arxiv.org/abs/1804.07931. The paper has two steps, and shares the embedding alone:
    that is `bottom`. We return logits of p_k, which stay exact where p_k rounds to 0 or 1. LibMTL
    has no ESMM.

    Called with one input for all tasks, returns {task: logit of p_k}, for
    `binary_cross_entropy_with_logits` with "this step and all before it happened" as target.

    Args:
        bottom: from the input to what every head reads; `nn.Identity()` for nothing shared.
        heads: the module of each step that returns logits, the first step first.

    Raises:
        TypeError: an argument is no module.
        ValueError: there is no task; when called: logits that differ in shape.

    Example:
        >>> heads = {"click": nn.Linear(8, 1), "conversion": nn.Linear(8, 1)}
        >>> model = ESMM(nn.Linear(3, 8), heads)
        >>> x = torch.randn(4, 3)
        >>> both = model(x)["conversion"].sigmoid()  # p(click and conversion)
        >>> once_clicked = model.conditional(x)["conversion"].sigmoid()  # p(conversion | click)
        >>> bool((both < once_clicked).all())
        True
    """

    def __init__(self, bottom: nn.Module, heads: Mapping[str, nn.Module]) -> None:
        check_module("bottom", bottom)
        super().__init__(heads)
        self.bottom = bottom

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The logits of `tasks` together with all steps before them."""
        last = max(map(self.tasks.index, tasks))
        steps = self._logits(inputs, self.tasks[: last + 1])
        check_same_shape("heads", list(steps.values()))
        found: dict[str, Tensor] = {}
        both: Tensor | None = None
        for task, logit in steps.items():
            both = logit if both is None else logit_of_both(both, logit)
            found[task] = both
        return {task: found[task] for task in tasks}

    def conditional(self, inputs: object) -> dict[str, Tensor]:
        """What the heads say: the logit of each step, given the step before."""
        return self._logits(inputs, self.tasks)

    def path(self, task: str) -> Iterable[nn.Module]:
        """The bottom, the head of the task and the heads of all steps before it."""
        before = self.tasks[: self.tasks.index(task) + 1]
        return [self.bottom, *(self.heads[step] for step in before)]

    def _logits(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        features = self.bottom(inputs)
        return {task: self.heads[task](features) for task in tasks}


def logit_of_both(a: Tensor, b: Tensor) -> Tensor:
    """The logit of σ(a) σ(b).

    log p - log(1 - p), where 1 - p = σ(-a) + σ(a) σ(-b) is a sum of positive numbers: nothing
    cancels.
    """
    yes = logsigmoid(a)
    return yes + logsigmoid(b) - torch.logaddexp(logsigmoid(-a), yes + logsigmoid(-b))
