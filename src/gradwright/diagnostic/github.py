"""Diagnostics as GitHub workflow commands, which show up beside the lines of a pull request.

The syntax and its escapes: GitHub Actions, "Workflow commands", and ``command.ts`` of
actions/toolkit.
"""

from __future__ import annotations

from pathlib import Path, PurePath

from gradwright.diagnostic.charset import UTF8
from gradwright.diagnostic.model import Diagnostic, Report, Span
from gradwright.diagnostic.names import display_name, relative_name
from gradwright.diagnostic.sections import spoken_name
from gradwright.diagnostic.source import split_lines

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(diagnostic: Diagnostic, cwd: Path | None = None) -> str:
    """One ``::error file=…,line=…,title=…::message`` line, at the primary label."""
    primary = diagnostic.primary
    properties = _place(primary.span, cwd) if primary else {}
    properties["title"] = f"{diagnostic.code} {spoken_name(diagnostic)}"
    listed = ",".join(f"{key}={_escape_property(text)}" for key, text in properties.items())
    command = _COMMANDS[diagnostic.severity]
    return f"::{command} {listed}::{_escape(_message(diagnostic, cwd))}"


def render_report(report: Report, cwd: Path | None = None) -> str:
    """One line per diagnostic; empty when nothing was found."""
    return "\n".join(render(diagnostic, cwd) for diagnostic in report.diagnostics)


def _place(span: Span, cwd: Path | None) -> dict[str, str]:
    """Where GitHub shows the message; it counts columns from 1, and knows them on one line only."""
    if span.file.startswith("<"):
        return {}
    end_line = span.end_line or span.line
    place = {
        "file": PurePath(relative_name(span.file, cwd)).as_posix(),
        "line": str(span.line),
        "endLine": str(end_line),
    }
    if end_line == span.line:
        place["col"] = str(span.column + 1)
        if span.end_column is not None:
            place["endColumn"] = str(span.end_column)
    return place


def _message(diagnostic: Diagnostic, cwd: Path | None) -> str:
    parts = [diagnostic.summary, diagnostic.why]
    if diagnostic.labels:
        parts.append("\n".join(_remarks(diagnostic, cwd)))
    keys = ["fix", *["or"] * len(diagnostic.fixes)]
    parts += [f"{key}: {fix.title}" for key, fix in zip(keys, diagnostic.fixes, strict=False)]
    return "\n\n".join(part for part in parts if part)


def _remarks(diagnostic: Diagnostic, cwd: Path | None) -> list[str]:
    ordered = sorted(diagnostic.labels, key=lambda label: label.order)
    return [f"{label.order} {_where(label.span, cwd)}: {label.text}" for label in ordered]


def _where(span: Span, cwd: Path | None) -> str:
    return f"{display_name(span.file, cwd)}:{span.line}"


def _escape(text: str) -> str:
    shown = "\n".join(UTF8.visible(line) for line in split_lines(text))
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
