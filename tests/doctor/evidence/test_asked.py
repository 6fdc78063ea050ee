"""Which call asked for the backward, also where several stand on one line."""

import torch

from gradwright.doctor.evidence.asked import loss_name
from tests.doctor.evidence.crashes import crash_of


def test_the_call_that_ran_is_meant() -> None:
    def program() -> None:
        first = torch.ones(2, requires_grad=True).exp().sum()
        second = torch.ones(2, requires_grad=True).exp()
        # fmt: off
        first.backward(); second.backward()  # noqa: E702
        # fmt: on

    assert loss_name(crash_of(program)) == "second"


def test_a_backward_beside_another_statement() -> None:
    def program() -> None:
        weight = torch.ones(2, requires_grad=True)
        # fmt: off
        with torch.no_grad(): loss = weight.sum(); loss = loss * 2  # noqa: E701, E702
        note = loss; loss.backward(); print(note)  # noqa: E702
        # fmt: on

    assert loss_name(crash_of(program)) == "loss"
