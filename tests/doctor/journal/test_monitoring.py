"""What is particular to `sys.monitoring`, from Python 3.12 on."""

import cProfile
import gc
import sys
from collections.abc import Callable, Iterator
from types import CodeType

import pytest
import torch

from gradwright.doctor.journal import NOWHERE, Journal, UserCode
from gradwright.doctor.journal.monitoring import MonitoringTracer
from tests.doctor.journal.scenarios import helper, leaf

pytestmark = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs Python 3.12")


@pytest.fixture
def journal() -> Iterator[Journal]:
    failures: list[BaseException] = []
    journal = Journal(UserCode(), failures.append)
    journal.start(sys._getframe())
    yield journal
    journal.stop()
    assert failures == []


def tracer_of(journal: Journal) -> MonitoringTracer:
    assert isinstance(journal._tracer, MonitoringTracer)
    return journal._tracer


def number(tensor: torch.Tensor) -> int:
    assert tensor.grad_fn is not None
    return tensor.grad_fn._sequence_nr()


def made_anew(name: str) -> CodeType:
    return compile("a = 1\nb = 2\n", name, "exec")


def test_code_that_is_gone_is_forgotten(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradwright.doctor.journal.places.CODES", 0)
    followed = tracer_of(journal)._followed
    codes = [made_anew(f"<{turn}>") for turn in range(50)]
    before = len(followed)
    for code in codes:
        exec(code, {})
    living = len(followed)
    del codes, code
    gc.collect()

    assert living == before + 50
    assert len(followed) == before


def test_profilers_and_coverage_find_their_numbers_free(journal: Journal) -> None:
    profile = cProfile.Profile()
    profile.enable()
    helper(leaf())
    profile.disable()
    profile.create_stats()

    assert any(name == "helper" for _, _, name in profile.stats)
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    for tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, monitoring.PROFILER_ID):
        assert monitoring.get_tool(tool) != "gradwright"


def test_a_later_journal_sees_what_was_library_code_for_an_earlier_one() -> None:
    space = {"torch": torch, "x": leaf()}
    code = compile("def make():\n    return x * 2\n", "<torch_made>", "exec")
    exec(code, space)
    stacks = []
    for user in (False, True):
        failures: list[BaseException] = []
        is_user = UserCode()
        is_user.known["<torch_made>"] = user
        journal = Journal(is_user, failures.append)
        journal.start(sys._getframe())
        made = space["make"]()  # type: ignore[operator]
        journal.stop()
        assert failures == []
        stacks.append([site.file for site in journal.stack_of_node(number(made))])

    assert stacks == [[__file__], ["<torch_made>", __file__]]


def test_a_function_that_left_unseen_takes_no_line_along(journal: Journal) -> None:
    """So it is with greenlets: they exchange the stack of a thread."""
    tracer, unseen = tracer_of(journal), made_anew("<unseen>")
    tracer._first_call(unseen)
    x = leaf() * 2
    line = sys._getframe().f_lineno - 1
    goes_on: Callable[[CodeType, int], object] = tracer._liner()
    nowhere = (goes_on(unseen, 1), leaf() * 3)[1]
    journal.stop()

    assert journal.stack_of_node(number(x))[0].line == line
    assert journal.place_of_node(number(nowhere)) == NOWHERE


def test_a_generator_goes_on_in_the_middle_of_a_line(journal: Journal) -> None:
    def turns():
        x = leaf()
        while True:
            y = x * 2 if (yield) else (x + 1)
            yield y

    generator = turns()
    next(generator)
    made = generator.send(True)
    journal.stop()

    assert journal.stack_of_node(number(made))[0].line == turns.__code__.co_firstlineno + 3
