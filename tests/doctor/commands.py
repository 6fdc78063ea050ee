"""Run programs with plain Python and with the doctor, each in a process of its own."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRADWRIGHT = [sys.executable, "-m", "gradwright"]


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str
    report: dict[str, Any] | None = None


def plain(cwd: Path, *arguments: str) -> Result:
    """What `python ARGUMENTS` does in the folder `cwd`."""
    return run([sys.executable, *arguments], cwd)


def doctor(cwd: Path, *arguments: str) -> Result:
    """What `gradwright doctor ARGUMENTS` does, with the report it writes."""
    file = cwd / "report.json"
    file.unlink(missing_ok=True)
    result = run([*GRADWRIGHT, "doctor", "--json", file.name, *arguments], cwd)
    report = json.loads(file.read_text()) if file.exists() else None
    return Result(result.status, result.out, result.err, report)


def run(command: list[str], cwd: Path) -> Result:
    result = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return Result(result.returncode, result.stdout, result.stderr)
