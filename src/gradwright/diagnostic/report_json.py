"""Reports as JSON, format version 1.

File names are relative to the working directory. A number that JSON cannot hold is written as a
string, and half of a surrogate pair as an escape: every parser takes the result. `report_reader`
reads it back.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from gradwright.diagnostic.model import (
    Diagnostic,
    ExceptionFacts,
    Fix,
    Label,
    Measurement,
    Report,
)
from gradwright.diagnostic.names import relative_name
from gradwright.diagnostic.report_reader import VERSION, from_json

__all__ = ["VERSION", "Json", "from_json", "to_json"]

Json = dict[str, object]


def to_json(report: Report, cwd: Path | None = None) -> Json:
    """``report`` as what `json.dump` takes; names below ``cwd`` (None: current) are shortened."""
    return {
        "version": VERSION,
        "script": _name(report.script, cwd),
        "outcome": report.outcome,
        "exception": _exception(report.exception, cwd),
        "steps": report.steps,
        "diagnostics": [_diagnostic(each, cwd) for each in report.diagnostics],
    }


def _exception(facts: ExceptionFacts | None, cwd: Path | None) -> Json | None:
    if facts is None:
        return None
    return {
        "type": _text(facts.type),
        "message": _text(facts.message),
        "file": _name(facts.file, cwd),
        "line": facts.line,
    }


def _diagnostic(diagnostic: Diagnostic, cwd: Path | None) -> Json:
    return {
        "code": _text(diagnostic.code),
        "name": _text(diagnostic.name),
        "category": _text(diagnostic.category),
        "severity": diagnostic.severity,
        "summary": _text(diagnostic.summary),
        "why": _text(diagnostic.why),
        "labels": [_label(label, cwd) for label in diagnostic.labels],
        "fixes": [_fix(fix, cwd) for fix in diagnostic.fixes],
        "not": _text(diagnostic.avoid),
        "affected": [_text(name) for name in diagnostic.affected],
        "measured": {_text(key): _number(value) for key, value in diagnostic.measured.items()},
        "context": _text(diagnostic.context),
    }


def _label(label: Label, cwd: Path | None) -> Json:
    span = label.span
    return {
        "file": _name(span.file, cwd),
        "line": span.line,
        "column": span.column,
        "end_line": span.line if span.end_line is None else span.end_line,
        "end_column": span.end_column,
        "text": _text(label.text),
        "order": label.order,
        "primary": label.primary,
    }


def _fix(fix: Fix, cwd: Path | None) -> Json:
    edits = [
        {
            "file": _name(edit.file, cwd),
            "line": edit.line,
            "end_line": edit.end_line,
            "replacement": _text(edit.replacement),
        }
        for edit in fix.edits
    ]
    return {"title": _text(fix.title), "edits": edits}


def _name(file: str, cwd: Path | None) -> str:
    return _text(relative_name(file, cwd))


def _text(text: str) -> str:
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _number(value: Measurement) -> Measurement:
    """``value`` as plain JSON; NaN and infinities by name, integers beyond 64 bits in hex."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else hex(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(float(value))
    return _text(str(value))
