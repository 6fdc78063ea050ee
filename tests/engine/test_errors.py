"""Bad input gets an error that says what to do, before any `.grad` changes."""

from collections.abc import Callable, Sequence

import pytest
import torch

from gradwright.engine import (
    LossError,
    LossWeighting,
    SharedError,
    Weighting,
    backward,
)
from tests.engine.methods import Counting, InverseNorms, Squashed
from tests.engine.refusal import Step

METHODS = [
    pytest.param(None, id="sum"),
    pytest.param(Counting(), id="losses"),
    pytest.param(InverseNorms(), id="Gramian"),
    pytest.param(Squashed(), id="Jacobian"),
]
every_method = pytest.mark.parametrize("weighting", METHODS)
task_methods = pytest.mark.parametrize("weighting", METHODS[2:])


def with_loss(name: str, change: Callable[[Step], object]) -> Callable[[Step], object]:
    return lambda step: step.losses | {name: change(step)}


LOSSES = {
    "an empty mapping": (lambda step: {}, ["at least one loss", "got none"]),
    "an empty list": (lambda step: [], ["at least one loss", "got none"]),
    "all absent": (lambda step: {"a": None, "b": None}, ["at least one loss", "None for all", "2"]),
    "a scalar alone": (lambda step: step.losses["task0"], ["shape []", "[task]"]),
    "a matrix": (lambda step: step.features, ["shape [6, 4]", "[task]"]),
    "NaN": (
        with_loss("task1", lambda step: step.losses["task1"] * torch.nan),
        ["'task1' is nan", "finite", "None"],
    ),
    "infinite": (
        with_loss("task2", lambda step: step.losses["task2"] * torch.inf),
        ["'task2' is inf", "finite"],
    ),
    "not scalar": (
        with_loss("task1", lambda step: step.features),
        ["'task1'", "shape [6, 4]", "scalar", "mean"],
    ),
    "a float": (with_loss("task1", lambda step: 0.5), ["'task1' is a float", "tensor", ".item()"]),
    "detached": (
        with_loss("task1", lambda step: step.losses["task1"].detach()),
        ["'task1' has no graph", "None"],
    ),
    "complex": (
        with_loss("task1", lambda step: torch.complex(step.losses["task1"], torch.ones(()))),
        ["'task1'", "complex", "real"],
    ),
    "repeated": (
        with_loss("again", lambda step: step.losses["task1"]),
        ["'task1' and 'again'", "same tensor", "twice"],
    ),
}


@every_method
@pytest.mark.parametrize(
    ("losses", "says"), [pytest.param(*case, id=name) for name, case in LOSSES.items()]
)
def test_losses(
    losses: Callable[[Step], object], says: Sequence[str], weighting: Weighting | None
) -> None:
    step = Step()
    step.refused(LossError, says, losses=losses(step), weighting=weighting)


@every_method
def test_position_names_a_loss_of_a_list(weighting: Weighting | None) -> None:
    step = Step()
    losses = [step.losses["task0"], step.losses["task1"] * torch.nan]
    step.refused(LossError, ["'1' is nan"], losses=losses, weighting=weighting)


@every_method
def test_freed_graph_is_refused_as_torch_does(weighting: Weighting | None) -> None:
    """Another error than ours, and still nothing is written."""
    step = Step()
    torch.stack([*step.losses.values()]).sum().backward()
    step.refused(RuntimeError, ["a second time"], weighting=weighting)


SHARED = {
    "unreached": (lambda step: [step.unused.weight], ["position 0", "[2, 2]", "no loss reaches"]),
    "computed": (
        lambda step: [step.trunk[0].weight, step.features],
        ["position 1", "[6, 4]", "computed", "leaves"],
    ),
    "frozen": (lambda step: [torch.zeros(3)], ["no tensor that requires a gradient"]),
    "empty": (lambda step: [], ["no tensor that requires a gradient"]),
}


@every_method
@pytest.mark.parametrize(
    ("shared", "says"), [pytest.param(*case, id=name) for name, case in SHARED.items()]
)
def test_shared(
    shared: Callable[[Step], object], says: Sequence[str], weighting: Weighting | None
) -> None:
    step = Step()
    step.refused(SharedError, says, shared=shared(step), weighting=weighting)


@task_methods
def test_nothing_is_shared(weighting: Weighting) -> None:
    step = Step()
    losses = step.heads([step.features.detach() for _ in range(3)])
    says = ["3 losses share no parameter", "weighting", "detach"]
    step.refused(SharedError, says, losses=losses, weighting=weighting)


@pytest.mark.parametrize("weighting", METHODS[:3])
def test_finite_check_can_be_left_out(weighting: Weighting | None) -> None:
    """Where a method's own check would refuse, the error speaks of the loss."""
    step = Step()
    losses = step.losses | {"task1": step.losses["task1"] * torch.nan}
    if weighting is None or isinstance(weighting, LossWeighting):
        backward(losses, weighting=weighting, check_finite=False)
    else:
        says = ["gradient of loss 'task1' is not finite"]
        step.refused(LossError, says, losses=losses, weighting=weighting, check_finite=False)


def test_route_that_would_not_be_exact_is_refused() -> None:
    step = Step()
    step.features.register_hook(lambda gradient: gradient.clamp(-1, 1))
    losses = step.heads(step.features)
    step.refused(
        LossError, ["route='lean'", "hook"], losses=losses, weighting=InverseNorms(), route="lean"
    )


@every_method
def test_unknown_route_is_refused(weighting: Weighting | None) -> None:
    Step().refused(ValueError, ["`route` is 'fast'"], weighting=weighting, route="fast")
