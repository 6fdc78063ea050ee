"""Read a report back from JSON, format version 1."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, cast, get_args

from gradwright.diagnostic.model import (
    Diagnostic,
    Edit,
    ExceptionFacts,
    Fix,
    Label,
    Measurement,
    Outcome,
    Report,
    Severity,
    Span,
)
from gradwright.diagnostic.names import absolute_name

VERSION = 1
Kind = TypeVar("Kind")


class ReportFormatError(ValueError):
    """JSON that is not a report of a version this library reads."""


def from_json(data: Mapping[str, object], cwd: Path | None = None) -> Report:
    """The report that `to_json` wrote; relative file names are below ``cwd`` (None: current).

    Keys it does not know are left out: later versions may add some.

    Raises:
        ReportFormatError: a key is missing, or its value is of the wrong kind.
    """
    version = _take(data, "version", int)
    if version != VERSION:
        raise ReportFormatError(f"a report needs version {VERSION}: got {version!r}.")
    exception = data.get("exception")
    return Report(
        script=_file(data, "script", cwd),
        outcome=cast(Outcome, _choice(data, "outcome", get_args(Outcome))),
        exception=None if exception is None else _exception(_table(exception), cwd),
        steps=_take(data, "steps", int),
        diagnostics=tuple(_diagnostic(each, cwd) for each in _tables(data, "diagnostics")),
    )


def _exception(data: Mapping[str, object], cwd: Path | None) -> ExceptionFacts:
    return ExceptionFacts(
        type=_take(data, "type", str),
        message=_take(data, "message", str),
        file=_file(data, "file", cwd),
        line=_take(data, "line", int),
    )


def _diagnostic(data: Mapping[str, object], cwd: Path | None) -> Diagnostic:
    return Diagnostic(
        code=_take(data, "code", str),
        name=_take(data, "name", str),
        category=_take(data, "category", str),
        severity=cast(Severity, _choice(data, "severity", get_args(Severity))),
        summary=_take(data, "summary", str),
        why=_take(data, "why", str),
        labels=tuple(_label(each, cwd) for each in _tables(data, "labels")),
        fixes=tuple(_fix(each, cwd) for each in _tables(data, "fixes")),
        avoid=_take(data, "not", str, default=""),
        affected=tuple(_expect(each, "affected", str) for each in _take(data, "affected", list)),
        measured=_measured(_table(_take(data, "measured", dict))),
        context=_take(data, "context", str, default=""),
    )


def _label(data: Mapping[str, object], cwd: Path | None) -> Label:
    end_column = data.get("end_column")
    span = Span(
        file=_file(data, "file", cwd),
        line=_take(data, "line", int),
        column=_take(data, "column", int),
        end_line=_take(data, "end_line", int),
        end_column=None if end_column is None else _expect(end_column, "end_column", int),
    )
    primary = _take(data, "primary", bool)
    return Label(span, _take(data, "text", str), _take(data, "order", int), primary)


def _fix(data: Mapping[str, object], cwd: Path | None) -> Fix:
    edits = [
        Edit(
            file=_file(each, "file", cwd),
            line=_take(each, "line", int),
            end_line=_take(each, "end_line", int),
            replacement=_take(each, "replacement", str),
        )
        for each in _tables(data, "edits")
    ]
    return Fix(_take(data, "title", str), tuple(edits))


def _measured(data: Mapping[str, object]) -> dict[str, Measurement]:
    measured: dict[str, Measurement] = {}
    for key, value in data.items():
        if not isinstance(value, str | int | float):
            raise ReportFormatError(f"{key!r} in 'measured' needs a number or text: got {value!r}.")
        measured[key] = value
    return measured


def _file(data: Mapping[str, object], key: str, cwd: Path | None) -> str:
    return absolute_name(_take(data, key, str), cwd)


def _choice(data: Mapping[str, object], key: str, allowed: tuple[str, ...]) -> str:
    text = _take(data, key, str)
    if text not in allowed:
        raise ReportFormatError(f"{key!r} needs one of {', '.join(allowed)}: got {text!r}.")
    return text


def _tables(data: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return [_table(each) for each in _take(data, key, list)]


def _table(value: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], _expect(value, "a report's part", dict))


def _take(
    data: Mapping[str, object], key: str, kind: type[Kind], default: Kind | None = None
) -> Kind:
    if key not in data and default is not None:
        return default
    return _expect(data.get(key), key, kind)


def _expect(value: object, key: str, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind):
        raise ReportFormatError(f"{key!r} needs {kind.__name__}: got {value!r}.")
    return value
