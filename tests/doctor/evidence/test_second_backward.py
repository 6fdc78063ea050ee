"""The small facts: trained parameters, owners, optimizers, calls, the words of a story."""

import torch
from torch import nn

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import calls_before, said_call, span_of_call, step_of
from gradwright.doctor.evidence.optimizers import optimizers_in_sight
from gradwright.doctor.evidence.owners import attribute_of, owners_of
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.evidence.second_backward import measured, second_backward, tell_calls
from gradwright.doctor.evidence.story import Story
from gradwright.doctor.evidence.trained import trained_by
from tests.doctor.conftest import Programs

MODEL = """
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.state = nn.Linear(2, 2), torch.zeros(1, 2)

        def forward(self, x):
            self.state = (self.map(x) + self.state).exp()
            return self.state

    net = nn.Sequential(nn.Linear(2, 2), Cell(), Cell())
    gain = nn.Parameter(torch.ones(2))
    optimizers = {"all": torch.optim.SGD(net.parameters(), lr=0.1)}
    for step in range(3):
        loss = net(gain * torch.ones(1, 2)).sum()
        loss.backward()
        optimizers["all"].step()
"""


def facts_of(crash: Crash) -> Reuse:
    facts = crash.once(second_backward)
    assert facts is not None
    return facts[0]


def test_the_parameters_below_in_the_order_of_the_model(programs: Programs) -> None:
    crash = programs.crash(MODEL)

    assert trained_by(crash, facts_of(crash))[:2] == ("net.0.weight", "net.0.bias")
    assert trained_by(crash, facts_of(crash))[-1] == "gain"


def test_every_object_of_the_class_that_keeps_a_state(programs: Programs) -> None:
    crash = programs.crash(MODEL)
    facts = crash.once(second_backward)
    assert facts is not None

    assert [name for name, _ in owners_of(crash, facts[1])] == ["net.1", "net.2"]


def test_attributes_of_modules_and_objects() -> None:
    module = nn.BatchNorm1d(2)

    assert attribute_of(module, "running_mean") is module.running_mean
    assert attribute_of(module, "weight") is module.weight
    assert attribute_of(module, "eps") == module.eps
    assert attribute_of(Span("file", 1), "missing") is None


def test_optimizers_that_stepped_or_lie_in_sight(programs: Programs) -> None:
    crash = programs.crash("""
        def made():
            return torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)

        used, waiting, several = made(), made(), [made()]
        used.step()
        torch.ones(2).sum().backward()
    """)
    frame = crash.user_frames[-1].frame.f_locals
    expected = [frame["used"], frame["waiting"], frame["several"][0]]

    assert {id(one) for one in optimizers_in_sight(crash)} == {id(one) for one in expected}


def test_how_calls_are_counted_and_shown(programs: Programs) -> None:
    crash = programs.crash(MODEL)
    reuse = facts_of(crash)
    journal, carried = crash.journal, reuse.joints[0].carried._sequence_nr()
    span = span_of_call(journal, reuse.call)

    assert said_call(reuse.call) == "backward call 2"
    assert (step_of(journal, carried), step_of(journal, reuse.call.node)) == (0, 1)
    assert (calls_before(crash, carried), calls_before(crash, reuse.call.node)) == (0, 2)
    assert span is not None and (span.line, span.column, span.end_column) == (18, 4, 19)


def test_a_grad_call_is_called_so(programs: Programs) -> None:
    reuse = facts_of(
        programs.crash("""
            x = torch.ones(2, requires_grad=True)
            y = x.exp().sum()
            torch.autograd.grad(y, x)
            torch.autograd.grad(y, x)
        """)
    )

    assert [said_call(reuse.freed_by), said_call(reuse.call)] == ["grad call 1", "grad call 2"]


def test_numbers_for_the_report(programs: Programs) -> None:
    crash = programs.crash(MODEL)
    numbers = measured(crash, facts_of(crash))

    assert (numbers["freed_by_call"], numbers["failing_call"]) == (1, 2)
    assert (numbers["freed_in_step"], numbers["failed_in_step"]) == (0, 1)


def test_labels_are_numbered_as_told_and_one_is_primary() -> None:
    story = Story()
    story.tell(Span("a", 3), "first")
    story.tell(None, "nothing to point at")
    story.tell(Span("a", 1), "second", primary=True)
    story.tell(Span("a", 2), "third", primary=True)

    assert [(label.text, label.order) for label in story.labels] == [
        ("first", 1),
        ("second", 2),
        ("third", 3),
    ]
    assert [label.primary for label in story.labels] == [False, True, False]


def test_the_two_calls_are_told_last(programs: Programs) -> None:
    story, crash = Story(), programs.crash(MODEL)
    tell_calls(story, crash, facts_of(crash))

    assert [label.text for label in story.labels] == [
        "backward call 1 freed what it walked",
        "backward call 2 needed it again",
    ]


def test_other_messages_are_no_second_backward(programs: Programs) -> None:
    assert second_backward(programs.crash("torch.ones(1).backward()")) is None
    assert torch.is_grad_enabled()
