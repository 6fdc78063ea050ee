"""Shared and task parameters are what autograd says: which leaves the outputs of a task reach."""

import pytest
import torch
from torch import nn

from gradwright.architecture import CGC, PLE, Architecture, DSelectK, MMoE, SharedBottom
from tests.architecture.models import MODELS, batch, gate, heads, layer, level, model


def reached(made: Architecture, task: str) -> set[nn.Parameter]:
    """The parameters that the task's output depends on, by the graph."""
    parameters = list(made.parameters())
    loss = made(batch())[task].square().sum()
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return {p for p, gradient in zip(parameters, gradients, strict=True) if gradient is not None}


def check_against_the_graph(made: Architecture) -> None:
    by_task = {task: reached(made, task) for task in made.tasks}
    shared = {p for p in made.parameters() if sum(p in found for found in by_task.values()) > 1}

    assert set(made.shared_parameters()) == shared
    for task, found in by_task.items():
        assert set(made.task_parameters(task)) == found - shared
    listed = [*made.shared_parameters(), *(p for t in made.tasks for p in made.task_parameters(t))]
    assert len(listed) == len(set(listed)) == len(list(made.parameters()))


@pytest.mark.parametrize("name", MODELS)
def test_they_are_what_the_graph_says(name: str) -> None:
    check_against_the_graph(model(name))


def test_what_heads_have_in_common_is_shared() -> None:
    tied = nn.Linear(4, 4)
    own = {task: nn.Sequential(tied, nn.Linear(4, 1)) for task in ("age", "job")}
    made = SharedBottom(layer(), {**own, "type": nn.Linear(4, 1)}).double()

    check_against_the_graph(made)
    assert any(parameter is tied.weight for parameter in made.shared_parameters())


def test_one_task_shares_nothing() -> None:
    made = PLE([level(3, 1), level(4, 1)], {"age": nn.Linear(4, 1)}).double()

    check_against_the_graph(made)
    assert made.shared_parameters() == []


@pytest.mark.parametrize("name", ["MMoE", "DSelectK", "CGC", "PLE"])
def test_a_module_that_gates_read_through_is_shared(name: str) -> None:
    read = layer(3, 3)
    made = {
        "MMoE": lambda: MMoE(layer, 2, gate, heads(), gate_input=read),
        "DSelectK": lambda: DSelectK(layer, 4, 2, heads(), gate=gate, gate_input=read),
        "CGC": lambda: CGC(layer, 1, 1, gate, heads(), gate_input=read),
        "PLE": lambda: PLE([level(3, 1), level(4, 1)], heads(), gate_input=read),
    }[name]().double()

    check_against_the_graph(made)
    assert set(read.parameters()) <= set(made.shared_parameters())


@pytest.mark.parametrize("name", MODELS)
def test_each_computes_only_the_path_of_its_task(name: str) -> None:
    """A module that no asked task needs is not called."""
    made = model(name)
    task = made.tasks[0]
    needed = {id(p) for p in [*made.shared_parameters(), *made.task_parameters(task)]}
    called: set[str] = set()
    for path, module in made.named_modules():
        if any(id(p) not in needed for p in module.parameters(recurse=False)):
            module.register_forward_hook(lambda *_, path=path: called.add(path))

    made.each({task: batch()})

    assert called == set()


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="`task` names the task 'ages', but the tasks are 'age', "):
        MMoE(layer, 2, gate, heads()).task_parameters("ages")
