from __future__ import annotations

import torch
from torch import Tensor, nn

from gradwright.doctor.evidence.flagless import find_flagless
from gradwright.doctor.evidence.frozen import frozen_feeds
from gradwright.doctor.evidence.regions import Region
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.switches import region_of
from gradwright.doctor.evidence.wanted import wanted_tensors
from tests.doctor.evidence.crashes import crash_of


def severance_of(crash: object) -> Severance:
    found = find_severance(crash)  # type: ignore[arg-type]
    assert found is not None
    return found


def test_detach_is_the_cut() -> None:
    weight = torch.ones(2, requires_grad=True)

    found = severance_of(crash_of(lambda: (weight * 2).detach().sum().backward()))

    assert found.cut is not None
    assert (found.cut.cut, found.trains) == ("detach", True)


def test_what_reads_a_shape_only_is_no_cut() -> None:
    weight = torch.ones(2, requires_grad=True)

    found = severance_of(crash_of(lambda: torch.ones_like(weight * 2).sum().backward()))

    assert found.cuts == ()


def test_the_cut_above_the_trained_tensor_comes_first() -> None:
    teacher, student = nn.Linear(2, 2), nn.Linear(2, 2)

    def program() -> None:
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        goal = teacher(torch.ones(1, 2)).detach()
        guess = student(torch.ones(1, 2)).data
        (goal - guess).sum().backward()
        optimizer.step()

    found = severance_of(crash_of(program))

    assert [cut.cut for cut in found.cuts] == ["data", "detach"]


def test_a_value_that_left_as_a_number_is_found_again() -> None:
    weight = torch.ones(2, requires_grad=True)

    def program() -> None:
        value = weight.sum().item()
        torch.tensor(value).backward()

    passage = severance_of(crash_of(program)).passage

    assert passage is not None
    assert (passage.back.name, passage.cut.name) == ("tensor", "sum")
    assert [escape.name for escape in passage.escapes] == ["item"]


def test_numbers_of_an_earlier_step_do_not_count() -> None:
    weight = torch.ones(2, requires_grad=True)

    def program() -> None:
        loss = weight.sum()
        loss.backward()
        print(loss.item())
        torch.tensor(0.0).backward()

    assert severance_of(crash_of(program)).passage is None


def region_around(program: object) -> Region | None:
    crash = crash_of(program)  # type: ignore[arg-type]
    cut = severance_of(crash).cut
    assert cut is not None
    return region_of(crash, crash.journal.places.stack(cut.place), cut)


def test_block_decorator_and_call_that_turn_recording_off() -> None:
    weight = torch.ones(2, requires_grad=True)

    def block() -> None:
        with torch.no_grad():
            loss = weight.sum()
        loss.backward()

    @torch.inference_mode()
    def made() -> Tensor:
        return weight.sum()

    def decorated() -> None:
        (made() * 2.0).backward()

    def left_on() -> None:
        torch.set_grad_enabled(False)
        weight.sum().backward()

    found = [region_around(program) for program in (block, decorated, left_on)]

    assert [one and one.kind for one in found] == ["with", "decorator", "left-on"]
    assert [one and one.inference for one in found] == [False, True, False]


def test_frozen_parameters_and_the_optimizer_that_wants_them() -> None:
    net, other = nn.Linear(2, 2), nn.Linear(2, 2)

    def program() -> None:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.requires_grad_(False)
        other.requires_grad_(False)
        loss = other(net(torch.ones(1, 2))).sum()
        loss.backward()
        optimizer.step()

    crash = crash_of(program)

    assert {id(one) for one in wanted_tensors(crash)} == {id(one) for one in net.parameters()}
    assert [feed.wanted for feed in frozen_feeds(crash)] == [True, True, False, False]


def test_an_update_that_makes_a_new_tensor() -> None:
    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        for _ in range(2):
            loss = weight.pow(2).sum()
            loss.backward()
            with torch.no_grad():
                weight = weight - 0.1 * (weight.grad if weight.grad is not None else 0.0)

    found = find_flagless(crash_of(program))

    assert found is not None
    assert (found.name, found.rebound) == ("weight", True)


def test_a_healthy_root_is_not_severed() -> None:
    weight = torch.ones(2, requires_grad=True)

    assert find_severance(crash_of(lambda: (weight * 2).backward())) is None
