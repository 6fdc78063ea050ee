"""Cross-stitch networks."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from gradwright.architecture.base import Architecture
from gradwright.architecture.making import MakeModule, check_list, check_number, make_modules
from gradwright.architecture.mixture import check_same_shape


class CrossStitch(Architecture):
    """One network per task, whose activations are mixed after every stage.

    What task k's next stage (or its head) reads is Σ_j α_kj x_j, with x_j what task j's stage gave;
    α [task, task] is learned, one for each stage.

    Misra, Shrivastava, Gupta and Hebert, Cross-stitch Networks for Multi-task Learning, CVPR 2016,
    equation 1, https://arxiv.org/abs/1604.03539. α starts with 0.9 on the diagonal and equal shares
    of the rest beside it, for two tasks the paper's 0.9 and 0.1. LibMTL's α is [task] for each
    stage, starts as ones, and has no unit after the last stage: there all tasks read the same.

    The unit after the last stage can be left out by making that stage a part of the heads.
    Every stage is on the path of every task, so nothing but the heads is a task's own.

    Called with one input for all tasks, returns {task: output}. Stages give [batch, *feature], the
    same shape for all tasks.

    Args:
        stages: what makes one task's network, a callable for each stage, the lowest first.
        heads: the module of each task.
        channels: for a unit of its own for each channel (dimension 1), the number of channels that
            each stage gives; then α is [task, task, channel].
        same: where the diagonal of α starts.
        different: where the rest of α starts; (1 - same) / (tasks - 1) if left out.

    Raises:
        TypeError: a module stands where a callable is needed, or the other way round.
        ValueError: there is no task or stage; when called: shapes that do not fit.

    Example:
        >>> heads = {"age": nn.Linear(8, 1), "job": nn.Linear(8, 5)}
        >>> first = lambda: nn.Sequential(nn.Linear(3, 8), nn.ReLU())
        >>> second = lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        >>> model = CrossStitch([first, second], heads)
        >>> model(torch.randn(4, 3))["job"].shape
        torch.Size([4, 5])
        >>> model.units[0]
        Parameter containing:
        tensor([[0.9000, 0.1000],
                [0.1000, 0.9000]], requires_grad=True)
    """

    def __init__(
        self,
        stages: Sequence[MakeModule],
        heads: Mapping[str, nn.Module],
        channels: Sequence[int] | None = None,
        same: float = 0.9,
        different: float | None = None,
    ) -> None:
        check_list("stages", stages)
        _check_channels(channels, len(stages))
        super().__init__(heads)
        n = len(self.tasks)
        self.stages = nn.ModuleList(
            nn.ModuleList(make_modules(f"stages[{position}]", maker, n))
            for position, maker in enumerate(stages)
        )
        other = (1 - same) / max(n - 1, 1) if different is None else different
        unit = torch.full((n, n), other).fill_diagonal_(same)
        self.units = nn.ParameterList(
            unit.clone() if channels is None else unit[:, :, None].repeat(1, 1, channels[position])
            for position in range(len(stages))
        )

    def outputs(self, inputs: object, tasks: Sequence[str]) -> dict[str, Tensor]:
        """The outputs of `tasks`, all for the same input: every stage is computed."""
        read: Sequence[object] = [inputs] * len(self.tasks)
        for position, (stage, unit) in enumerate(zip(self.stages, self.units, strict=True)):
            assert isinstance(stage, nn.ModuleList)
            given = [module(x) for module, x in zip(stage, read, strict=True)]
            check_same_shape(f"stages[{position}]", given)
            read = _stitched(unit, torch.stack(given), position)
        return {task: self.heads[task](read[self.tasks.index(task)]) for task in tasks}

    def path(self, task: str) -> Iterable[nn.Module]:
        """All stages, all units, and the task's head."""
        return [self.stages, self.units, self.heads[task]]


def _stitched(unit: Tensor, given: Tensor, position: int) -> list[Tensor]:
    """Σ_j unit [task, j(, channel)] · given [j, batch, *feature], a tensor for each task."""
    if unit.ndim == 2:
        return list(torch.einsum("kj,jb...->kb...", unit, given))
    if given.ndim < 3 or given.shape[2] != unit.shape[2]:
        raise ValueError(
            f"`channels[{position}]` is {unit.shape[2]}, but the stage gave "
            f"{list(given.shape[1:])}: dimension 1 needs to be the channel."
        )
    return list(torch.einsum("kjc,jbc...->kbc...", unit, given))


def _check_channels(channels: Sequence[int] | None, n_stages: int) -> None:
    if channels is None:
        return
    if len(channels) != n_stages:
        raise ValueError(
            f"`channels` needs one number per stage: got {len(channels)} for {n_stages} stages."
        )
    for position, number in enumerate(channels):
        check_number(f"channels[{position}]", number)
