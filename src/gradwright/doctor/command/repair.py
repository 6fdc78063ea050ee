"""`gradwright doctor --fix`: run, apply the first fix, run again, say what became of the problem.

Both runs are processes of their own: the second meets no memory, port or file that the first
one still holds.
"""

import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from gradwright.diagnostic import (
    Diagnostic,
    EditError,
    Fix,
    Report,
    apply_to_files,
    from_json,
)
from gradwright.doctor.command.changes import diff
from gradwright.doctor.command.child import run_child
from gradwright.doctor.command.options import Options
from gradwright.doctor.command.output import check_writable, colored, say, write_json
from gradwright.doctor.command.replacement import RefusedError, replace_files

STILL_THERE = 1
MISUSED = 2
SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run of the doctor; `report` is None when it did not get so far."""

    status: int
    report: Report | None


def repair(options: Options) -> int:
    """Run the program, apply the first fix and run it again; returns the exit status.

    Raises:
        OutputError: the file for the report cannot be written.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        say("gradwright: --fix needs a single process, found several. Start it without torchrun.")
        return MISUSED
    if options.json is not None:
        check_writable(options.json)
    first = _run(options)
    if first.report is None:
        return first.status
    if options.json is not None:
        write_json(first.report, options.json, Path.cwd())
    if first.status > SIGNALLED or not first.report.diagnostics:
        return first.status
    proposal = propose(first.report)
    if proposal is None:
        say("\ngradwright: no fix here can be applied without you.")
        return first.status
    diagnostic, fix = proposal
    if not _apply(fix, options.force):
        return first.status or STILL_THERE
    second = _run(options)
    verdict, status = judge(diagnostic, second)
    say(f"\ngradwright: {verdict}")
    return status


def propose(report: Report) -> tuple[Diagnostic, Fix] | None:
    """The first fix that says what to write, with its problem."""
    return next(
        ((each, fix) for each in report.diagnostics for fix in each.fixes if fix.edits), None
    )


def judge(problem: Diagnostic, run: Run) -> tuple[str, int]:
    """What became of `problem` in the run after the fix, in words and as an exit status."""
    name = f"{problem.code} ({problem.name.replace('-', ' ')})"
    if run.report is None or run.status > SIGNALLED:
        return f"{name}: the second run was ended from outside.", run.status
    found = run.report.diagnostics
    if any((each.code, each.summary) == (problem.code, problem.summary) for each in found):
        return f"{name} is still there after the fix.", run.status or STILL_THERE
    if found:
        other = found[0]
        return f"{name} is gone. Another problem now: {other.code}, {other.summary}.", run.status
    if run.report.exception is not None:
        return f"{name} is gone. The program now fails for another reason.", run.status
    return f"{name} is gone.", run.status


def _run(options: Options) -> Run:
    """Run the doctor as the user has asked for, without `--fix`."""
    with tempfile.TemporaryDirectory(prefix="gradwright-") as folder:
        file = Path(folder) / "report.json"
        alone = replace(options, json=file, fix=False, force=False)
        status = run_child(["doctor", *alone.as_arguments()])
        if not file.exists():
            return Run(status, None)
        return Run(status, from_json(json.loads(file.read_text(encoding="utf-8")), Path.cwd()))


def _apply(fix: Fix, force: bool) -> bool:
    """Show the fix as a diff and apply it; False if the files had to stay as they are."""
    try:
        texts = apply_to_files(fix)
        changes = diff(texts, color=colored(sys.stderr), encoding=sys.stderr.encoding)
        copies = replace_files(texts, force=force)
    except (EditError, RefusedError) as error:
        say(f"\n{error}")
        return False
    kept = "".join(f"\nThe file as it was: {copy.name}" for copy in copies)
    say(f"\ngradwright: applied the fix: {fix.title.rstrip(':')}\n{changes}{kept}\n")
    say("gradwright: running the program again.\n")
    return True
