"""A step whose gradients are watched while a call is refused."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import backward
from tests.engine.models.common import Heads, batch, mlp


class Step:
    """A model and its losses; half of the parameters have a gradient already."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.trunk, self.heads, self.unused = mlp(nn.Tanh()), Heads(), nn.Linear(2, 2)
        parts = (self.trunk, self.heads, self.unused)
        self.parameters = [parameter for part in parts for parameter in part.parameters()]
        for parameter in self.parameters[::2]:
            parameter.grad = torch.randn_like(parameter)
        self.features = self.trunk(batch())
        self.losses: dict[str, Tensor] = self.heads(self.features)

    def snapshot(self) -> list[Tensor | None]:
        return [None if p.grad is None else p.grad.clone() for p in self.parameters]

    def refused(self, error: type[Exception], says: Sequence[str], **arguments: object) -> None:
        """The call raises, the message has these parts, and no `.grad` is another one."""
        before = self.snapshot()
        given = {"losses": self.losses} | arguments
        with pytest.raises(error) as caught:
            backward(**given)  # type: ignore[arg-type]
        for part in says:
            assert part in str(caught.value)
        for parameter, was in zip(self.parameters, before, strict=True):
            if was is None:
                assert parameter.grad is None
            else:
                assert parameter.grad is not None
                assert torch.equal(parameter.grad, was)
