from pathlib import Path

import pytest

from gradwright.diagnostic import Diagnostic, Fix, Label, Report, Severity, Span
from gradwright.diagnostic.github import render, render_report
from tests.diagnostic.samples import graph_used_twice


def at(span: Span, summary: str = "s", severity: Severity = "error") -> Diagnostic:
    label = Label(span, "here", 1, primary=True)
    return Diagnostic("GW101", "a,b:c", "other", severity, summary, "", (label,), (Fix("x"),))


def test_the_primary_label_and_the_whole_story(tmp_path: Path) -> None:
    command = render(graph_used_twice(tmp_path), tmp_path)
    place = "file=train_mmoe.py,line=35,endLine=35,col=9,endColumn=23"
    assert command.startswith(f"::error {place},title=GW101 graph used twice::`features` was")
    assert "%0A1 train_mmoe.py:27: built here, once;" in command
    assert "%0A%0Afix: compute the features with the batch" in command
    assert "\n" not in command


def test_properties_and_message_are_escaped() -> None:
    command = render(at(Span("/a,b:c%/t.py", 1), "50% :: \r\nx\x1b"), Path("/other"))
    assert command.startswith(
        "::error file=/a%2Cb%3Ac%25/t.py,line=1,endLine=1,col=1,title=GW101 a%2Cb%3Ac::"
        "50%25 :: %0Ax\\x1b%0A"
    )


def test_columns_are_left_out_over_several_lines() -> None:
    assert render(at(Span("/t.py", 1, 4, 3, 2)), Path("/")).startswith(
        "::error file=t.py,line=1,endLine=3,title="
    )


def test_made_code_has_no_place() -> None:
    assert render(at(Span("<string>", 1))).startswith("::error title=")


@pytest.mark.parametrize(
    ("severity", "command"), [("error", "error"), ("warning", "warning"), ("note", "notice")]
)
def test_severities_have_githubs_names(severity: Severity, command: str) -> None:
    assert render(at(Span("/t.py", 1), severity=severity)).startswith(f"::{command} ")


def test_a_report_has_one_line_per_diagnostic() -> None:
    found = at(Span("/t.py", 1))
    assert render_report(Report("t.py", "finished", None, 1, (found, found))).count("\n::") == 1
    assert render_report(Report("t.py", "finished", None, 1, ())) == ""
