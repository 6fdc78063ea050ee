"""A method that answers wrongly is named, before any `.grad` changes."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from gradwright.engine import (
    GramianWeighting,
    JacobianWeighting,
    LossError,
    LossWeighting,
    Scalarization,
    TaskMismatch,
    Weighting,
    backward,
)
from tests.engine.methods import InverseNorms, Squashed
from tests.engine.refusal import Step

routes = pytest.mark.parametrize("memory", [2**30, 0], ids=["rows kept", "rows dropped"])


class ForTwo(GramianWeighting):
    n_tasks = 2

    def forward(self, gramian: Tensor) -> Tensor:
        return torch.ones(2)


class LossesForTwo(LossWeighting):
    n_tasks = 2

    def forward(self, losses: Tensor) -> Tensor:
        return torch.ones(2)


@pytest.mark.parametrize("weighting", [ForTwo(), LossesForTwo()], ids=["Gramian", "losses"])
def test_wrong_number_of_tasks(weighting: Weighting) -> None:
    says = [
        f"{type(weighting).__name__} for 2 tasks",
        "3 losses: 'task0', 'task1', 'task2'",
        "None",
    ]
    Step().refused(TaskMismatch, says, weighting=weighting)


def test_a_task_that_is_absent_counts() -> None:
    step = Step()
    result = backward(
        {"task0": step.losses["task0"], "task1": step.losses["task1"], "task2": None},
        weighting=InverseNorms(),
    )
    assert result.tasks == ("task0", "task1", "task2")


class Says(GramianWeighting):
    """Returns the weights it was made with."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.said = torch.tensor(weights)

    def forward(self, gramian: Tensor) -> Tensor:
        return self.said


class SaysOfLosses(LossWeighting):
    """The same, of losses."""

    def __init__(self, *weights: float) -> None:
        super().__init__()
        self.said = torch.tensor(weights)

    def forward(self, losses: Tensor) -> Tensor:
        return self.said


@routes
@pytest.mark.parametrize("kind", [Says, SaysOfLosses], ids=["Gramian", "losses"])
def test_wrong_number_of_weights(kind: type, memory: int) -> None:
    says = [kind.__name__, "shape [2]", "3 losses"]
    Step().refused(TaskMismatch, says, weighting=kind(1.0, 2.0), memory=memory)


@routes
@pytest.mark.parametrize("kind", [Says, SaysOfLosses], ids=["Gramian", "losses"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf], ids=["NaN", "infinite"])
def test_weights_that_are_not_finite(kind: type, value: float, memory: int) -> None:
    says = [kind.__name__, "finite"]
    Step().refused(LossError, says, weighting=kind(1.0, value, 2.0), memory=memory)


class Exploding(Scalarization):
    """Its own parameter has a gradient too."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1000.0))

    def total(self, losses: Tensor) -> Tensor:
        return (losses * self.scale.exp()).sum()


def test_a_methods_own_parameters_stay_as_well() -> None:
    step, weighting = Step(), Exploding()
    step.parameters.append(weighting.scale)
    step.refused(LossError, ["Exploding", "finite"], weighting=weighting)


class Misshapen(JacobianWeighting):
    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        return [*(rows.sum(0) for rows in jacobian[:-1]), jacobian[-1]]


class TooFew(JacobianWeighting):
    def forward(self, jacobian: Sequence[Tensor], losses: Tensor) -> list[Tensor]:
        return [rows.sum(0) for rows in jacobian[:-1]]


@pytest.mark.parametrize("kind", [Misshapen, TooFew])
def test_update_that_does_not_fit(kind: type[Weighting]) -> None:
    Step().refused(ValueError, [kind.__name__], weighting=kind())


@pytest.mark.parametrize("weighting", [InverseNorms(), Squashed()], ids=["Gramian", "Jacobian"])
def test_gradient_that_is_not_finite(weighting: Weighting) -> None:
    """√0 is finite, its slope is not."""
    step = Step()
    at_zero = (step.losses["task1"] - step.losses["task1"].detach()).clamp(min=0).sqrt()
    says = ["gradient of loss 'task1' is not finite", "although the loss is"]
    step.refused(LossError, says, losses=step.losses | {"task1": at_zero}, weighting=weighting)
