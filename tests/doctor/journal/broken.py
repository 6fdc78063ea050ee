"""Runs the doctor with one part broken, each in turn: `python broken.py OUT SCRIPT …`."""

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import gradwright.doctor.watch
from gradwright.doctor import diagnose
from gradwright.doctor.command import cli, output
from gradwright.doctor.journal import (
    engine,
    journal,
    monitoring,
    optimizers,
    places,
    recorder,
    settrace,
)

PARTS: dict[str, tuple[object, str]] = {
    "nothing": (sys, "no_such_part"),
    "tracer": (places.Places, "place"),
    "thread": (monitoring.MonitoringTracer, "_push")
    if hasattr(sys, "monitoring")
    else (settrace.SettraceTracer, "_local"),
    "engine call": (engine, "next_node_number"),
    "engine marks": (engine, "reachable"),
    "step hook": (optimizers, "next_node_number"),
    "step pre-hook": (journal.Journal, "_before_step"),
    "function mode before": (recorder, "_version"),
    "function mode after": (recorder.Recorder, "_record"),
    "function names": (recorder, "_name_of"),
    "start": (journal.Journal, "start"),
    "rules": (diagnose, "RULES"),
    "crash": (gradwright.doctor.watch, "Crash"),
    "renderer": (output, "render_report"),
}


class Broken(Exception):
    pass


@contextlib.contextmanager
def broken(part: str) -> Iterator[None]:
    owner, name = PARTS[part]

    def fail(*_: object, **__: object) -> None:
        raise Broken("broken on purpose")

    rule = mock.Mock(explain=fail, code="GW000")
    value = [rule, rule] if part == "rules" else fail
    with mock.patch.object(owner, name, value, create=part == "nothing"):
        yield


def visit(part: str, script: str) -> dict[str, object]:
    printed, said = io.StringIO(), io.StringIO()
    status: object = None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said), broken(part):
        try:
            status = cli.main(["doctor", script])
        except SystemExit as error:
            status = error.code
    return {"printed": printed.getvalue(), "said": said.getvalue(), "status": status}


if __name__ == "__main__":
    out, *scripts = sys.argv[1:]
    sys.path[0] = ""
    results = {f"{part}: {script}": visit(part, script) for part in PARTS for script in scripts}
    Path(out).write_text(json.dumps(results), encoding="utf-8")
