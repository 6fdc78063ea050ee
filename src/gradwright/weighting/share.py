"""Weights on the simplex, where a batch has only some of the tasks."""

import torch
from torch import Tensor

from gradwright.engine.weights.bases import Weighting
from gradwright.weighting.values import state_of


def share_of(weighting: Weighting, weights: Tensor, values: Tensor) -> Tensor:
    """Weights [task] of the tasks of this step, made to sum to 1; equal ones where all are 0."""
    present = state_of(weighting, weights, values)
    total = present.sum()
    return torch.where(total > 0, present / total, 1 / len(present))


def put_share(weighting: Weighting, weights: Tensor, share: Tensor) -> None:
    """Give the tasks of this step, among them, what they had: the sum over all tasks stays."""
    weighting.put_present(weights, share * weighting.of_present(weights).sum().to(share))
