"""Labels that are missing: rows of a batch, whole tasks, tasks of different data sets."""

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor, nn

import gradwright as gw
from gradwright.architecture import AITM, ESMM, Architecture
from gradwright.engine import LossError, Weighting
from gradwright.weighting import DBMTL, UPGrad
from tests.architecture.labels import labels_of, losses_of, spread
from tests.architecture.models import MODELS, TASKS, batch, model
from tests.engine.methods import assert_gradients
from tests.reference.task_gradients import task_gradients

WEIGHTINGS: dict[str, Callable[[], Weighting | None]] = {
    "sum": lambda: None,
    "UPGrad": UPGrad,
    "DBMTL": lambda: DBMTL(len(TASKS)),
}
PRESENT = [("age", "type"), ("job", "type"), ("job",), ("type",)]

each_model = pytest.mark.parametrize("name", MODELS)


def of_different_sets(made: Architecture, present: tuple[str, ...]) -> dict[str, Tensor]:
    """The losses of tasks that have an input and a number of examples of their own."""
    inputs = {task: batch(4 + TASKS.index(task), seed=TASKS.index(task)) for task in present}
    labels = {task: labels_of(made, len(x), seed=9)[task] for task, x in inputs.items()}
    torch.manual_seed(3)  # of LTB's draws
    return losses_of(made, made.each(inputs), labels)


def shared_for(method: Weighting | None, made: Architecture) -> list[nn.Parameter] | None:
    """A method that remembers rows needs the same shared parameters whichever tasks are there."""
    return made.shared_parameters() if isinstance(method, DBMTL) else None


def own(made: Architecture, task: str) -> list[Tensor]:
    return list(made.task_parameters(task))


@pytest.mark.parametrize("present", PRESENT, ids="-".join)
@each_model
def test_the_gradient_is_that_of_the_present_tasks_alone(
    name: str, present: tuple[str, ...]
) -> None:
    """Against one `torch.autograd.grad` per loss, for a sum and for a method with weights."""
    for weighting in (None, UPGrad()):
        made = model(name)
        expected = task_gradients(
            list(of_different_sets(made, present).values()), list(made.parameters())
        )
        n = len(present)
        ones = weights = torch.ones(n, dtype=torch.float64)
        if weighting is not None and n > 1:
            weights = weighting(expected.gramian())

        step = gw.backward(
            spread(of_different_sets(made, present), made.tasks), weighting=weighting
        )

        assert step.tasks == made.tasks
        assert step.losses.isfinite().tolist() == [task in present for task in made.tasks]
        assert_gradients(list(made.parameters()), expected.combined(weights, ones))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@each_model
def test_rows_without_labels_are_left_out_of_the_loss(name: str, weighting: str) -> None:
    """One input for all tasks; a task without a label in the whole batch is absent."""
    made, x, twin = model(name), batch(6), model(name)
    labels = labels_of(made, 6, seed=2)
    labelled = {
        "age": torch.tensor([True, False, True, True, False, True]),
        "job": torch.zeros(6, dtype=torch.bool),
        "type": torch.tensor([False, True, True, False, True, True]),
    }

    torch.manual_seed(3)
    rows = {task: y[labelled[task]] for task, y in made(x).items() if labelled[task].any()}
    losses = losses_of(made, rows, {task: labels[task][labelled[task]] for task in rows})
    gw.backward(spread(losses, made.tasks), weighting=WEIGHTINGS[weighting]())

    torch.manual_seed(3)
    outputs = twin(x)
    masked = {
        task: losses_of(twin, {task: outputs[task][at]}, {task: labels[task][at]})[task]
        for task, at in labelled.items()
        if task != "job"
    }
    alone = WEIGHTINGS[weighting]()
    if isinstance(alone, DBMTL):
        alone = DBMTL(2)
    gw.backward(masked, weighting=alone)

    assert_gradients(list(made.parameters()), [p.grad for p in twin.parameters()])
    if not isinstance(made, ESMM | AITM):  # there a later step needs the steps before it
        assert all(p.grad is None for p in own(made, "job"))
        assert all(p.grad is not None for task in rows for p in own(made, task))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@each_model
def test_tasks_of_different_sets_take_turns_and_learn(name: str, weighting: str) -> None:
    """Each step has the labels of one, two or all of the three tasks."""
    made, method = model(name), WEIGHTINGS[weighting]()
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    turns = [("age", "type"), ("job", "type"), ("type",), TASKS]

    def all_losses() -> list[float]:
        made.eval()
        with torch.no_grad():
            return [float(loss) for loss in of_different_sets(made, TASKS).values()]

    before = all_losses()
    for number in range(40):
        made.train()
        optimizer.zero_grad()
        losses = of_different_sets(made, turns[number % len(turns)])
        gw.backward(spread(losses, made.tasks), weighting=method, shared=shared_for(method, made))
        optimizer.step()
    after = all_losses()

    assert sum(after) < 0.9 * sum(before)


@each_model
def test_a_task_without_labels_stays_as_it_is(name: str) -> None:
    made = model(name)
    absent = made.tasks[-1]  # no other task needs the last of some steps
    before = [p.detach().clone() for p in own(made, absent)]
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(3):
        optimizer.zero_grad()
        losses = of_different_sets(made, ("age", "job"))
        gw.backward(spread(losses, made.tasks), weighting=UPGrad())
        optimizer.step()

    assert before
    for parameter, then in zip(own(made, absent), before, strict=True):
        assert torch.equal(parameter, then)


@each_model
def test_class_weights_weigh_examples_and_nothing_else(name: str) -> None:
    """Against the sum over examples, written out."""
    made, twin, x = model(name), model(name), batch(7)
    steps = isinstance(made, ESMM | AITM)
    labels = labels_of(made, 7, seed=2)
    weights = {
        task: torch.tensor([0.2, 3.0, 1.5][:n]).double()
        for n, task in enumerate(made.tasks, 1)
        if n > 1 and not steps
    }
    if steps:
        weights = {"job": torch.tensor(4.0).double()}

    torch.manual_seed(3)
    losses = losses_of(made, made(x), labels, weights)
    gw.backward(losses, weighting=UPGrad())
    torch.manual_seed(3)
    by_hand = written_out(twin, twin(x), labels, weights)
    gw.backward(by_hand, weighting=UPGrad())

    assert set(weights) < set(losses)
    assert_gradients(list(made.parameters()), [p.grad for p in twin.parameters()])


def written_out(
    made: Architecture,
    outputs: Mapping[str, Tensor],
    labels: Mapping[str, Tensor],
    weights: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """The same losses as means over examples, without the functions of torch."""
    found = {}
    for task, y in outputs.items():
        target, weight = labels[task], weights.get(task)
        if isinstance(made, ESMM | AITM):
            one = torch.ones((), dtype=torch.float64) if weight is None else weight
            yes, no = y.sigmoid().log(), (-y).sigmoid().log()
            found[task] = -(one * target * yes + (1 - target) * no).mean()
        elif target.ndim == 1:
            w = torch.ones(y.shape[1]).double()[target] if weight is None else weight[target]
            log_p = y.log_softmax(dim=1).gather(1, target[:, None])[:, 0]
            found[task] = -(w * log_p).sum() / w.sum()
        else:
            found[task] = (y - target).square().mean()
    return found


def test_a_mean_over_no_labels_is_refused_and_changes_nothing() -> None:
    made, x = model("MMoE"), batch()
    outputs = made(x)
    none = torch.zeros(len(x), dtype=torch.bool)
    losses = {task: y.square().mean() for task, y in outputs.items()}
    losses["job"] = outputs["job"][none].square().mean()

    with pytest.raises(LossError, match=r"'job' is nan.* give None for a task that is absent"):
        gw.backward(losses, weighting=UPGrad())

    assert all(p.grad is None for p in made.parameters())


def test_a_method_that_remembers_rows_says_that_it_needs_the_shared_parameters() -> None:
    """With one task present the graph has another set of them; see `shared_for`."""
    made, method = model("SharedBottom"), DBMTL(len(TASKS))
    gw.backward(of_different_sets(made, TASKS), weighting=method)
    made.zero_grad()
    losses = spread(of_different_sets(made, ("age",)), made.tasks)

    with pytest.raises(ValueError, match="the same shared parameters in every step"):
        gw.backward(losses, weighting=method)

    assert all(p.grad is None for p in made.parameters())
    gw.backward(
        spread(of_different_sets(made, ("age",)), made.tasks),
        weighting=DBMTL(len(TASKS)),
        shared=made.shared_parameters(),
    )
    assert made.get_parameter("heads.age.weight").grad is not None
