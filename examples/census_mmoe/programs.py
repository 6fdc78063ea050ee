"""Runs the parts of the demo as a user would: in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


class DemoError(Exception):
    """A part of the demo that did not do what it says."""


def doctor(*arguments: str) -> list[str]:
    """The command `gradwright doctor`, also where its script is not on the path."""
    return [sys.executable, "-m", "gradwright", "doctor", *arguments]


def shown(command: Sequence[str], folder: Path) -> int:
    """Run a program with its messages as they are; returns its exit status."""
    sys.stdout.flush()  # what we said comes first
    return subprocess.run(
        command, cwd=folder, env=_environment(), stderr=subprocess.STDOUT, check=False
    ).returncode


def lines(command: Sequence[str], folder: Path, name: str) -> Iterator[str]:
    """What a program prints, line by line.

    Raises:
        DemoError: the program has failed; the message calls it `name`.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield line.rstrip("\n")
    if process.returncode != 0:
        raise DemoError(f"{name} ended with status {process.returncode}, expected 0.")


def _environment() -> dict[str, str]:
    """Ours, and where the data is: the program runs in a folder far from the repository."""
    given = os.environ.get("GRADWRIGHT_SHARED")
    beside = Path(__file__).resolve().parents[2].with_name("shared")
    shared = Path(given).resolve() if given else beside
    # One thread: on a busy machine, several wait for each other far longer than they compute.
    return {"OMP_NUM_THREADS": "1", **os.environ, "GRADWRIGHT_SHARED": str(shared)}
