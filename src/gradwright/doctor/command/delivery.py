"""Deliver the report of a run: write the file, show it on standard error."""

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from gradwright.diagnostic import Report
from gradwright.doctor.command.output import Format, OutputError, say, shown, write_json
from gradwright.doctor.command.run import End

UNWRITTEN = 2


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run starts and its report goes, noted before the program can change it."""

    process: int
    cwd: Path
    stderr: TextIO
    rank: int
    file: Path | None
    format: Format


def deliver(report: Report, end: End, place: Place, *, watched: bool) -> int:
    """Write and show the report; returns the status of that, 0 if all went well."""
    status = 0
    if place.file is not None:
        try:
            write_json(report, place.file, place.cwd)
        except OutputError as error:
            say(str(error), place.stderr)
            status = UNWRITTEN
    if place.rank == 0 or end.raised:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()  # what the program printed comes before what is said about it
        text = _text(report, end, place, watched)
        if text:
            say(text, place.stderr)
    return status


def _text(report: Report, end: End, place: Place, watched: bool) -> str:
    try:
        text = shown(report, place.format, place.stderr, place.cwd)
    except Exception as error:
        return f"gradwright: cannot show the report: {type(error).__name__}: {error}"
    if place.format != "text":
        return text
    if not report.diagnostics and not watched:
        text = "gradwright: no verdict, for the doctor failed."
    return "\n".join([*_opening(end, place), text, *_closing(report, end)])


def _opening(end: End, place: Place) -> list[str]:
    gap = [""] if end.raised else []  # below the traceback
    return [*gap, f"gradwright: rank {place.rank}"] if place.rank else gap


def _closing(report: Report, end: End) -> list[str]:
    """A line for an exception that the diagnostics shown do not explain."""
    explained = any(each.severity == "error" for each in report.diagnostics)
    unexplained = end.raised and report.diagnostics and not explained
    return ["", "gradwright: no rule explains the exception."] if unexplained else []
