"""`backward` refuses methods that need more than losses and their gradients."""

import pytest
import torch
from torch import Tensor

from gradwright.engine import Weighting, backward


class OfWholeSteps(Weighting):
    def forward(self, validation: Tensor) -> Tensor:
        return torch.ones(len(validation))


def test_a_method_of_whole_steps_is_refused_before_anything_changes() -> None:
    weight = torch.ones(3, requires_grad=True)

    with pytest.raises(ValueError, match="OfWholeSteps, which reads more than losses and their"):
        backward([weight.sum(), (2 * weight).sum()], weighting=OfWholeSteps())

    assert weight.grad is None
