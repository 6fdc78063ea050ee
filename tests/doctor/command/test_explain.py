"""`gradwright explain` and `gradwright rules`."""

import pytest

from gradwright.doctor.command.explain import documentation, explain, list_rules, table
from gradwright.doctor.rules import RULES, Rule

DOCUMENTATION = """A thing goes wrong.

What it does
------------
Finds it.

Example
-------
    loss.backward()
"""


def rule(code: str, name: str, text: str = DOCUMENTATION) -> Rule:
    return Rule(code, name, "other", text, lambda crash: None)


TWO = (rule("GW205", "second-thing"), rule("GW101", "first-thing", "The first " + "thing " * 20))


@pytest.mark.parametrize("code", ["GW205", " gw205", "second-thing", "Second thing"])
def test_a_rule_is_found_by_code_or_name(capsys: pytest.CaptureFixture[str], code: str) -> None:
    assert explain(code, TWO) == 0
    assert capsys.readouterr().out == f"GW205  second thing\n\n{DOCUMENTATION}"


@pytest.mark.parametrize(
    ("code", "hint"),
    [("GW206", "Did you mean GW205 (second-thing)?"), ("frist-thing", "GW101"), ("x", "")],
)
def test_close_matches_are_suggested(
    capsys: pytest.CaptureFixture[str], code: str, hint: str
) -> None:
    assert explain(code, TWO) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"gradwright: there is no rule {code!r}.")
    assert hint in captured.err
    assert ("Did you mean" in captured.err) == bool(hint)


def test_a_terminal_gets_bold_headings_instead_of_lines() -> None:
    text = documentation(TWO[0], color=True)

    assert "\x1b[1mGW205  second thing\x1b[0m" in text
    assert "\x1b[1mWhat it does\x1b[0m\nFinds it." in text
    assert "\x1b[2m    loss.backward()\x1b[0m" in text
    assert "---" not in text


def test_the_table_is_by_code_and_keeps_to_the_width() -> None:
    rows = table(TWO, width=50)

    assert rows[0].startswith("GW101  first-thing   The first thing")
    assert rows[-1] == "GW205  second-thing  A thing goes wrong."
    assert len(rows) > 3 and max(map(len, rows)) <= 50
    assert len(table(TWO)) == 2


def test_every_rule_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_rules() == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == sorted([each.code, each.name] for each in RULES)
    assert len(lines) == len(RULES) > 0


def test_no_rules_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_rules(()) == 0
    assert "no rules" in capsys.readouterr().err


@pytest.mark.parametrize("each", RULES, ids=lambda each: each.code)
def test_every_rule_has_its_documentation(each: Rule) -> None:
    text = documentation(each)

    assert each.summary.endswith(".")
    for section in ("What it does", "Why it hurts", "Example", "Use instead", "When it is fine"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
