"""Weights of their own for each group of parameters."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gradwright.engine.weights.bases import (
    GramianLossWeighting,
    GramianWeighting,
    GroupWeighting,
    Weighting,
)
from gradwright.weighting.checks import read_gramian
from gradwright.weighting.wrapped import take_head_rules, weights_inside


class PerGroup(GroupWeighting):
    """One method per group of shared parameters; each reads the Gramian of its group.

    Tasks that agree in one layer may conflict in the next. Wang et al., Gradient Vaccine:
    Investigating and Improving Multi-task Optimization in Massively Multilingual Models, ICLR 2021,
    section 3.3, https://arxiv.org/abs/2010.05874, measures the cosines per layer; LibMTL has it as
    GradVac's `group_type`, where the random order of the tasks is the same in all groups. Here each
    group draws its own.

    As there is not one weight per task, heads cannot follow it: they are treated as the first
    group's method treats them, unless that is "weighted"; then `heads` needs to be given.

    Called with Gramians [group, task, task] and losses [task], returns weights [group, task].

    Args:
        weightings: by the group's name, a method that reads a Gramian. `gradwright.backward` takes
            the parameters of the groups as `shared`, by the same names.

    Example:
        >>> import gradwright as gw
        >>> from gradwright.weighting.gradvac import GradVac
        >>> trunk = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 3))
        >>> heads = [nn.Linear(3, 1) for _ in range(2)]
        >>> groups = {name: list(layer.parameters()) for name, layer in trunk.named_children()}
        >>> groups = {name: group for name, group in groups.items() if group}
        >>> weighting = PerGroup({name: GradVac(2) for name in groups})
        >>> features = trunk(torch.ones(8, 4))
        >>> losses = [head(features).square().mean() for head in heads]
        >>> gw.backward(losses, weighting=weighting, shared=groups).weights.shape
        torch.Size([2, 2])
    """

    def __init__(self, weightings: Mapping[str, Weighting]) -> None:
        if not weightings:
            raise ValueError("`weightings` needs one method per group of parameters: got none.")
        for name, weighting in weightings.items():
            if not isinstance(weighting, GramianWeighting | GramianLossWeighting):
                raise ValueError(
                    f"`weightings` needs methods that read a Gramian: {name!r} has "
                    f"{type(weighting).__name__}."
                )
        super().__init__()
        self._groups = tuple(weightings)
        modules = {_as_module_name(name): weighting for name, weighting in weightings.items()}
        if len(modules) < len(weightings) or len({*map(id, weightings.values())}) < len(weightings):
            raise ValueError(
                "`weightings` needs a name and a method of its own for each group, as methods "
                f"have state: got {', '.join(map(repr, weightings))}."
            )
        self.weightings = nn.ModuleDict(modules)
        take_head_rules(self, next(iter(weightings.values())))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups, in order."""
        return self._groups

    def forward(self, gramians: Tensor, losses: Tensor) -> Tensor:
        """Weights [group, task]."""
        if gramians.ndim != 3 or len(gramians) != len(self.groups):
            raise ValueError(
                f"`gramians` needs the shape [group, task, task] with {len(self.groups)} groups: "
                f"got {list(gramians.shape)}."
            )
        weights = [
            self._of_group(weighting, read_gramian(gramian), losses)
            for weighting, gramian in zip(self.weightings.values(), gramians, strict=True)
        ]
        return torch.stack(weights).to(gramians)

    def _of_group(self, weighting: nn.Module, gramian: Tensor, losses: Tensor) -> Tensor:
        assert isinstance(weighting, Weighting)
        reads_losses = isinstance(weighting, GramianLossWeighting)
        read = (gramian, losses.to(gramian)) if reads_losses else (gramian,)
        return weights_inside(self, weighting, *read)


def _as_module_name(name: str) -> str:
    """`nn.Module` takes no dots in the names of its parts, which `named_modules` gives."""
    return name.replace(".", "/")
