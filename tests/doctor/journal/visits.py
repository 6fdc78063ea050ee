"""Runs the doctor on programs, one after the other: `python visits.py OUT SCRIPT …`."""

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path

from gradwright.doctor.command import cli


def visit(script: str) -> dict[str, object]:
    """What the program printed, what was said, and how it ended."""
    printed, said = io.StringIO(), io.StringIO()
    folder = os.getcwd()
    status: object = 0
    started = time.process_time()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            status = cli.main(["doctor", script])
        except SystemExit as error:
            status = error.code
        seconds = time.process_time() - started
    os.chdir(folder)
    for name in ("weird", "none"):
        sys.modules.pop(name, None)
    sys.setrecursionlimit(1000)
    return {
        "printed": printed.getvalue(),
        "said": said.getvalue(),
        "status": status,
        "seconds": seconds,
    }


if __name__ == "__main__":
    out, *scripts = sys.argv[1:]
    sys.path[0] = ""
    import torch._dynamo  # the first program to step does not wait for it alone

    assert torch._dynamo
    results = {script: visit(script) for script in scripts}
    Path(out).write_text(json.dumps(results), encoding="utf-8")
