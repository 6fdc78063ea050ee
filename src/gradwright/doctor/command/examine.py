"""`gradwright doctor`: run the program, say what was found, and end as it would have ended."""

import os
import sys
from pathlib import Path

from gradwright.diagnostic import Report
from gradwright.doctor.command.delivery import Place, deliver
from gradwright.doctor.command.observation import Observation
from gradwright.doctor.command.options import Options
from gradwright.doctor.command.output import check_writable, rank_file
from gradwright.doctor.command.run import End, announce, run_program
from gradwright.doctor.command.script import home_of

EXPLAINED = 1
FAILED = 2


def examine(options: Options) -> int:
    """Run the program and report on it; returns the exit status.

    Raises:
        ProgramError: the program cannot be started.
        OutputError: the file for the report cannot be written.
        KeyboardInterrupt: the program's own.
    """
    place = _here(options)
    if place.file is not None:
        check_writable(place.file)
    home = home_of(options.program[0], options.module)
    observation = Observation(home, options.steps, options.ignore)
    end = run_program(options, observation)
    announce(end)
    if os.getpid() != place.process:  # a forked child that ran on to the end of the script
        return _leave(end, end.status)
    script = options.program[0] if end.program is None else end.program.file
    report = observation.report(end.exception, script)
    delivered = deliver(report, end, place, watched=not observation.failed)
    return _leave(end, exit_status(report, end, options.strict) or delivered)


def exit_status(report: Report, end: End, strict: bool) -> int:
    """The status of a run: 1 for a problem, 2 for other failures, else the program's own."""
    problems = ("error", "warning") if strict else ("error",)
    if any(diagnostic.severity in problems for diagnostic in report.diagnostics):
        return EXPLAINED
    return FAILED if end.raised else end.status


def _here(options: Options) -> Place:
    rank = os.environ.get("RANK", "")  # set by torchrun and its like
    number = int(rank) if rank.isdigit() else 0
    cwd = Path.cwd()
    file = options.json and rank_file(cwd / options.json, number)
    return Place(os.getpid(), cwd, sys.stderr, number, file, options.format)


def _leave(end: End, status: int) -> int:
    """The exit status; Ctrl-C goes on, so that Python ends by the signal."""
    if isinstance(end.exception, KeyboardInterrupt):
        sys.excepthook = lambda *_: None  # its traceback has been shown
        raise end.exception
    return status
