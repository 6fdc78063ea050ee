import pytest

from gradwright.doctor.evidence.handed_on import HandedOn, handed_on_unchanged
from gradwright.doctor.evidence.second_backward import second_backward
from tests.doctor.conftest import Programs


def handed_on(programs: Programs, helper: str) -> HandedOn | None:
    crash = programs.crash(f"""
        def settle(state, keep=True):
            {helper}

        cell, state = nn.RNNCell(2, 3), torch.zeros(1, 3)
        for _ in range(2):
            state = cell(torch.ones(1, 2), state)
            state.exp().sum().backward()
            state = settle(state)
    """)
    facts = second_backward(crash)
    assert facts is not None
    return handed_on_unchanged(crash, *facts)


def test_the_return_that_gives_the_argument_back(programs: Programs) -> None:
    found = handed_on(programs, "return state")
    assert found is not None

    assert (found.span.line, found.name, found.returned.id) == (5, "settle", "state")
    assert found.text.startswith("`settle` hands its argument back unchanged")


@pytest.mark.parametrize("helper", ["return state * 0.5", "return state.clone()"])
def test_a_helper_that_computes_is_none(programs: Programs, helper: str) -> None:
    assert handed_on(programs, helper) is None
