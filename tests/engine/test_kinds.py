"""`backward` refuses methods that need more than the losses of one batch."""

import pytest
import torch

from gradwright.engine import CrossGramianWeighting, backward


class Cross(CrossGramianWeighting):
    def forward(self, cross_gramian: torch.Tensor) -> torch.Tensor:
        return torch.ones(len(cross_gramian))


def test_a_method_of_two_batches_is_refused_before_anything_changes() -> None:
    weight = torch.ones(3, requires_grad=True)

    with pytest.raises(ValueError, match="Cross, which reads more than the losses of one batch"):
        backward([weight.sum(), (2 * weight).sum()], weighting=Cross())

    assert weight.grad is None
