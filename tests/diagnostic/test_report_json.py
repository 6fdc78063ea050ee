import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradwright.diagnostic import (
    Diagnostic,
    Edit,
    ExceptionFacts,
    Fix,
    Label,
    Report,
    ReportFormatError,
    Span,
    from_json,
    to_json,
)
from tests.diagnostic.samples import graph_used_twice

text = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = st.integers(1, 10_000)
EMPTY: dict[str, object] = {"labels": [], "fixes": [], "affected": [], "measured": {}}
TEXTS = dict.fromkeys(["code", "name", "category", "summary", "why"], "x")
BAD_VALUE = {**EMPTY, **TEXTS, "severity": "note", "measured": {"x": None}}
file_names = text.map("/project/".__add__) | text.map(lambda name: f"<{name}>")
spans = st.builds(Span, file_names, numbers, numbers, numbers, st.none() | numbers)
labels = st.builds(Label, spans, text, numbers, st.booleans())
edits = st.builds(Edit, file_names, numbers, numbers, text)
fixes = st.builds(Fix, text, st.lists(edits, max_size=2).map(tuple))
values = (
    text
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)
diagnostics = st.builds(
    Diagnostic, text, text, text, st.sampled_from(["error", "warning", "note"]), text, text,
    st.lists(labels, max_size=2).map(tuple), st.lists(fixes, max_size=2).map(tuple), text,
    st.lists(text, max_size=2).map(tuple), st.dictionaries(text, values, max_size=2), text,
)  # fmt: skip
exceptions = st.builds(ExceptionFacts, text, text, file_names, numbers)
reports = st.builds(
    Report, file_names, st.sampled_from(["finished", "raised", "stopped"]),
    st.none() | exceptions, numbers, st.lists(diagnostics, max_size=2).map(tuple),
)  # fmt: skip


def report_with(measured: dict[str, int | float | str | bool]) -> Report:
    found = Diagnostic("GW1", "n", "other", "note", "s", "w", (), measured=measured)
    return Report("/project/t.py", "finished", None, 1, (found,))


@settings(max_examples=50)
@given(reports, st.sampled_from([Path("/project"), Path("/"), Path("/elsewhere")]))
def test_a_report_comes_back_from_json(report: Report, cwd: Path) -> None:
    written = json.dumps(to_json(report, cwd), allow_nan=False)
    assert from_json(json.loads(written), cwd) == report


def test_the_format_is_version_1(tmp_path: Path) -> None:
    facts = ExceptionFacts("RuntimeError", "again", str(tmp_path / "train_mmoe.py"), 35)
    found = graph_used_twice(tmp_path)
    written = to_json(Report(facts.file, "raised", facts, 1, (found,)), tmp_path)
    assert {key: value for key, value in written.items() if key != "diagnostics"} == {
        "version": 1,
        "script": "train_mmoe.py",
        "outcome": "raised",
        "exception": {
            "type": "RuntimeError",
            "message": "again",
            "file": "train_mmoe.py",
            "line": 35,
        },
        "steps": 1,
    }
    assert isinstance(written["diagnostics"], list)
    first = written["diagnostics"][0]
    assert list(first) == [
        "code", "name", "category", "severity", "summary", "why", "labels", "fixes", "not",
        "affected", "measured", "context",
    ]  # fmt: skip
    assert first["labels"][3] == {
        "file": "train_mmoe.py", "line": 35, "column": 8, "end_line": 35, "end_column": 23,
        "text": "backward call 2 needed them again", "order": 4, "primary": True,
    }  # fmt: skip
    assert first["fixes"][0]["edits"][0] == {
        "file": "train_mmoe.py", "line": 27, "end_line": 27, "replacement": "",
    }  # fmt: skip
    assert first["affected"] == ["embed.weight"]
    assert first["measured"] == {"backward_calls": 2, "nodes": 2}


def test_an_open_span_ends_on_its_line() -> None:
    found = Diagnostic("GW1", "n", "other", "note", "s", "w", (Label(Span("/a.py", 3), "t", 1),))
    written = to_json(Report("/a.py", "finished", None, 1, (found,)))
    assert isinstance(written["diagnostics"], list)
    label = written["diagnostics"][0]["labels"][0]
    assert (label["end_line"], label["end_column"]) == (3, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (2**63, "0x8000000000000000")],
)
def test_what_json_cannot_hold_is_text(value: float, expected: str) -> None:
    written = json.dumps(to_json(report_with({"value": value})), allow_nan=False)
    assert json.loads(written)["diagnostics"][0]["measured"] == {"value": expected}


@given(st.text(st.characters(), max_size=20))
def test_lone_surrogates_are_escaped(name: str) -> None:
    written = json.dumps(to_json(report_with({name: name})), ensure_ascii=False)
    assert json.loads(written.encode("utf-8"))["version"] == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 2}, "needs version 1: got 2"),
        ({"steps": "many"}, "'steps' needs int: got 'many'"),
        ({"outcome": "fine"}, "'outcome' needs one of finished, raised, stopped: got 'fine'"),
        ({"diagnostics": [7]}, "needs dict: got 7"),
        ({"script": None}, "'script' needs str"),
        ({"diagnostics": [BAD_VALUE]}, "'x' in 'measured' needs a number or text: got None"),
    ],
)
def test_other_json_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ReportFormatError, match=reason):
        from_json({**to_json(report_with({})), **change})


def test_unknown_keys_are_left_out() -> None:
    report = report_with({})
    assert from_json({**to_json(report), "later": "addition"}) == report
