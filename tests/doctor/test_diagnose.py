"""Which rule speaks, and what happens when one cannot."""

import pytest

from gradwright.diagnostic import Diagnostic
from gradwright.doctor import diagnose as module
from gradwright.doctor.crash import Crash
from gradwright.doctor.diagnose import diagnose
from gradwright.doctor.rules import RULES, Rule
from tests.doctor.conftest import Programs

TWICE = """
    loss = nn.Linear(2, 1)(torch.ones(1, 2)).square().sum()
    loss.backward()
    loss.backward()
"""


def saying(code: str) -> Rule:
    def explain(crash: Crash) -> Diagnostic:
        return Diagnostic(code, "a-name", "other", "error", "a summary", "why", ())

    return Rule(code, "a-name", "other", "", explain)


def failing(crash: Crash) -> Diagnostic | None:
    raise ZeroDivisionError


SILENT = Rule("GW000", "silent", "other", "", lambda crash: None)
FAILING = Rule("GW999", "failing", "other", "", failing)


def codes(crash: Crash, failures: list[BaseException], ignored: tuple[str, ...] = ()) -> list[str]:
    return [found.code for found in diagnose(crash, failures.append, ignored)]


@pytest.fixture
def crash(programs: Programs) -> Crash:
    return programs.crash(TWICE)


def test_the_first_rule_that_knows_the_cause_speaks(
    crash: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RULES", (SILENT, saying("GW001"), saying("GW002")))

    assert codes(crash, []) == ["GW001"]


def test_a_rule_that_fails_is_reported_and_left_out(
    crash: Crash, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RULES", (FAILING, saying("GW002")))
    failures: list[BaseException] = []

    assert codes(crash, failures) == ["GW002"]
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


def test_ignored_rules_are_not_asked(crash: Crash, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RULES", (FAILING, saying("GW101"), saying("GW201")))

    assert codes(crash, [], ("GW999", "GW1")) == ["GW201"]


def test_nobody_knows(programs: Programs) -> None:
    assert codes(programs.crash('raise RuntimeError("disk full")'), []) == []


@pytest.mark.parametrize("wrapping", ["raise RuntimeError('wrapped') from error", "1 // 0"])
def test_the_cause_is_sought_behind_the_last_exception(programs: Programs, wrapping: str) -> None:
    text = f"""
        loss = nn.Linear(2, 1)(torch.ones(1, 2)).square().sum()
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            try:
                {wrapping}
            except ZeroDivisionError as last:
                raise RuntimeError("while tidying up") from last
    """

    assert codes(programs.crash(text), []) == ["GW101"]


def test_every_rule_is_silent_on_a_plain_failure(programs: Programs) -> None:
    crash = programs.crash("torch.ones(2) @ torch.ones(3)")

    assert [rule.code for rule in RULES if rule.explain(crash) is not None] == []
