"""Every rule's Markdown file holds: message, offered fix, repaired program."""

from pathlib import Path

import pytest

from gradwright.doctor.rules import RULES
from tests.rules.programs import Visit, read_rule, repair, visit, write

FILES = sorted(Path(__file__).parent.glob("GW*.md"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_message_is_what_the_file_says_and_the_first_fix_cures(path: Path, tmp_path: Path) -> None:
    rule = read_rule(path)
    folder = write(rule.broken, tmp_path / "broken")
    found = visit(folder)

    assert found.said == rule.message
    assert [each.code for each in found.report.diagnostics] == [rule.code]
    assert found.status == 1

    repair(found.report)
    assert_healthy(visit(folder))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_program_repaired_by_hand_is_left_in_peace(path: Path, tmp_path: Path) -> None:
    assert_healthy(visit(write(read_rule(path).fixed, tmp_path / "fixed")))


def test_every_rule_has_a_file() -> None:
    assert {rule.code for rule in RULES} == {path.stem.partition("-")[0] for path in FILES}


def assert_healthy(seen: Visit) -> None:
    """The program ran to its end, and the doctor had nothing to say."""
    assert (seen.report.outcome, seen.report.diagnostics, seen.status) == ("finished", (), 0)
