"""Multi-task attention network."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.making import MakeModule, check_list, check_module, make_modules
from gradwright.architecture.tasks import TaskModules


class AttentionStage(NamedTuple):
    """One stage of the shared network, and what makes the tasks' attention to it.

    Args:
        first: the part of the stage that gives u, which attention reads.
        second: from u to p, which attention selects from.
        attention: makes one task's attention module, from [u, what came before] (joined along
            dimension 1; in the first stage u alone) to a mask for p, usually in [0, 1].
        onward: shared by all tasks: brings the selected features to the size of the next stage's
            u; in the last stage to what heads read.
    """

    first: nn.Module
    second: nn.Module
    attention: MakeModule
    onward: nn.Module


class MTAN(Architecture):
    """One shared network; each task selects from its features by attention, stage by stage.

    With u = first(p'), p = second(u), for p' of the stage below (the input in the lowest):
    task k's mask is a_k = attention_k([u; f_k']) and it hands on f_k = onward(a_k ⊙ p).

    Liu, Johns and Davison, End-to-End Multi-Task Learning with Attention, CVPR 2019, section 3.2,
    https://arxiv.org/abs/1803.10704. LibMTL fixes all modules for ResNet, has no `onward` after the
    last stage (use `nn.Identity()`), and leaves it out of the shared parameters, although all
    tasks share it.

    Called with one input for all tasks, returns {task: output}. Features are [batch, channel, ...].

    Args:
        stages: an `AttentionStage` for each stage, the lowest first.
        heads: the module of each task.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task or stage; when called: shapes that do not fit.

    Example:
        >>> def stage(n_in, n_read, n):
        ...     attention = lambda: nn.Sequential(nn.Linear(n_read, n), nn.Sigmoid())
        ...     return AttentionStage(nn.Linear(n_in, n), nn.ReLU(), attention, nn.Identity())
        >>> heads = {"age": nn.Linear(8, 1), "job": nn.Linear(8, 5)}
        >>> model = MTAN([stage(3, 6, 6), stage(6, 8 + 6, 8)], heads)
        >>> model(torch.randn(4, 3))["job"].shape
        torch.Size([4, 5])
    """

    def __init__(self, stages: Sequence[AttentionStage], heads: Mapping[str, nn.Module]) -> None:
        _check_stages(stages)
        super().__init__(heads)
        self.first = nn.ModuleList(stage.first for stage in stages)
        self.second = nn.ModuleList(stage.second for stage in stages)
        self.onward = nn.ModuleList(stage.onward for stage in stages)
        made = [
            make_modules(f"stages[{position}].attention", stage.attention, len(self.tasks))
            for position, stage in enumerate(stages)
        ]
        self.attention = TaskModules(
            {task: nn.ModuleList(modules) for task, *modules in zip(self.tasks, *made, strict=True)}
        )

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input."""
        features = self._shared(inputs)
        return {task: self.heads[task](self._attended(task, features)) for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """The shared network, and the task's attention and head."""
        return [self.first, self.second, self.onward, self.attention[task], self.heads[task]]

    def _shared(self, inputs: object) -> list[tuple[Tensor, Tensor]]:
        """u and p of every stage."""
        found: list[tuple[Tensor, Tensor]] = []
        for first, second in zip(self.first, self.second, strict=True):
            u = first(inputs)
            found.append((u, second(u)))
            inputs = found[-1][1]
        return found

    def _attended(self, task: str, features: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """What the task selects, stage by stage."""
        before: Tensor | None = None
        stages = zip(self.attention[task].children(), features, self.onward, strict=True)
        for position, (attention, (u, p), onward) in enumerate(stages):
            mask = attention(_joined(u, before, position))
            _check_mask(task, position, mask, p)
            before = onward(mask * p)
        assert before is not None
        return before


def _joined(u: Tensor, before: Tensor | None, position: int) -> Tensor:
    """u and what came before, if anything did, along dimension 1."""
    if before is None:
        return u
    if before.shape[:1] + before.shape[2:] != u.shape[:1] + u.shape[2:]:
        raise ValueError(
            f"`stages[{position - 1}].onward` gave {list(before.shape)}, which is to be joined "
            f"along dimension 1 with what `stages[{position}].first` gave, {list(u.shape)}: "
            "the other dimensions need to be the same."
        )
    return torch.cat([u, before], dim=1)


def _check_mask(task: str, position: int, mask: Tensor, p: Tensor) -> None:
    if mask.shape != p.shape:
        raise ValueError(
            f"`stages[{position}].attention` of {task!r} gave a mask {list(mask.shape)}, but "
            f"`stages[{position}].second` gave {list(p.shape)}: they need the same shape."
        )


def _check_stages(stages: Sequence[AttentionStage]) -> None:
    check_list("stages", stages)
    for position, stage in enumerate(stages):
        if not isinstance(stage, AttentionStage):
            raise TypeError(
                f"`stages` needs an `AttentionStage` per stage: got {type(stage).__name__}."
            )
        for name in ("first", "second", "onward"):
            check_module(f"stages[{position}].{name}", getattr(stage, name))
