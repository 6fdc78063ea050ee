"""Diagnostics: what went wrong in a training program, where, why, and what to write instead.

Facts (`Diagnostic`, `Report` and their parts) know nothing of how they are shown; `text`, `html`,
`github` and `report_json` show them. Nothing here needs torch.
"""

from gradwright.diagnostic.edits import EditError, apply, apply_to_files, edits_between
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
from gradwright.diagnostic.report_json import from_json, to_json
from gradwright.diagnostic.report_reader import ReportFormatError
from gradwright.diagnostic.source import lines_of
from gradwright.diagnostic.text import render, render_report

__all__ = [
    "Diagnostic",
    "Edit",
    "EditError",
    "ExceptionFacts",
    "Fix",
    "Label",
    "Measurement",
    "Outcome",
    "Report",
    "ReportFormatError",
    "Severity",
    "Span",
    "apply",
    "apply_to_files",
    "edits_between",
    "from_json",
    "lines_of",
    "render",
    "render_report",
    "to_json",
]
