"""What one recorded step has found, and the cosines and norms that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The tasks' gradients in each shared layer, at one recorded step.

    Attributes:
        step: The number of the call of `watch`, from 0.
        tasks: The names of the tasks.
        gramians: Inner products of the gradients, for each layer [task, task], float64. NaN for
            a task that was absent, whose loss does not reach the layer, or whose gradient there
            is not finite.
    """

    step: int
    tasks: tuple[str, ...]
    gramians: Mapping[str, Tensor]

    @property
    def cosines(self) -> dict[str, Tensor]:
        """For each layer [task, task]; NaN where a gradient is missing or zero."""
        return {layer: cosines_of(gramian) for layer, gramian in self.gramians.items()}

    @property
    def norms(self) -> dict[str, Tensor]:
        """The length of the gradients, for each layer [task]; NaN where one is missing."""
        return {layer: norms_of(gramian) for layer, gramian in self.gramians.items()}

    @property
    def spreads(self) -> dict[str, "Spread"]:
        """For each layer the least and the mean cosine of its pairs, and the norm ratio."""
        return {layer: spread_of(gramian) for layer, gramian in self.gramians.items()}


class Spread(NamedTuple):
    """One layer at one step, over all pairs of tasks; NaN where there is no pair."""

    least_cosine: float
    mean_cosine: float
    norm_ratio: float  # the longest gradient by the shortest that is not zero


def norms_of(gramian: Tensor) -> Tensor:
    """The length of each gradient: [task, task] → [task]."""
    return gramian.diagonal().sqrt()


def cosines_of(gramian: Tensor) -> Tensor:
    """G[i, j] / √(G[i, i] G[j, j]); NaN where a gradient is missing or zero."""
    norms = norms_of(gramian)
    return (gramian / norms[:, None] / norms).clamp(-1.0, 1.0)


def above_diagonal(matrix: Tensor) -> Tensor:
    """The entries of the pairs (i, j), i < j: [task, task] → [pair]."""
    first, second = torch.triu_indices(len(matrix), len(matrix), 1)
    return matrix[first, second]


def spread_of(gramian: Tensor) -> Spread:
    """The least and the mean cosine over pairs, and the ratio of the norms."""
    cosines = above_diagonal(cosines_of(gramian))
    cosines = cosines[~cosines.isnan()]
    norms = norms_of(gramian)
    norms = norms[norms > 0]
    if not len(cosines):
        return Spread(nan, nan, nan)
    return Spread(float(cosines.min()), float(cosines.mean()), float(norms.max() / norms.min()))
