"""One line about a report in which nothing was found."""

from __future__ import annotations

from pathlib import Path

from gradwright.diagnostic.model import Report
from gradwright.diagnostic.names import display_name

MOST_OF_A_MESSAGE = 500  # characters: some frameworks put whole configurations into one


def verdict(report: Report, cwd: Path | None = None) -> str:
    """How the run ended and that nothing was found; for an exception, where it left from."""
    script = display_name(report.script, cwd)
    if report.exception is not None:
        facts = report.exception
        place = f"{display_name(facts.file, cwd)}:{facts.line}"
        message = " ".join(facts.message[:MOST_OF_A_MESSAGE].split())
        return f"gradwright: no rule explains this. {place} raised {facts.type}: {message}"
    ended = {"finished": "ran to its end", "stopped": "was stopped", "raised": "raised"}
    steps = "1 optimizer step" if report.steps == 1 else f"{report.steps} optimizer steps"
    return f"gradwright: nothing found. {script} {ended[report.outcome]}, {steps} watched."
