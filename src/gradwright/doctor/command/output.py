"""Where a report goes: standard error, and the JSON file."""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Literal, TextIO

from gradwright.diagnostic import Report, github, render_report, to_json

Format = Literal["text", "github", "json"]


class OutputError(Exception):
    """A file that cannot be written; the message is complete."""


def colored(stream: TextIO) -> bool:
    """Whether colour is welcome on `stream`: a terminal, and no NO_COLOR."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and stream.isatty()


def say(text: str, stream: TextIO | None = None) -> None:
    """Write lines to standard error in one piece; a closed stream is no reason to fail."""
    stream = stream or sys.stderr
    with contextlib.suppress(OSError, ValueError, AttributeError):  # AttributeError: no stream
        stream.write(text + "\n")
        stream.flush()


def show(text: str) -> None:
    """Print lines, with what standard output cannot encode as question marks."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, errors="replace").decode(encoding), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def shown(report: Report, form: Format, stream: TextIO, cwd: Path) -> str:
    """The report as it goes to standard error."""
    if form == "json":
        return json.dumps(to_json(report, cwd), allow_nan=False)
    if form == "github":
        return github.render_report(report, cwd)
    columns = shutil.get_terminal_size().columns if stream.isatty() else None
    return render_report(
        report, color=colored(stream), cwd=cwd, columns=columns, encoding=stream.encoding
    )


def rank_file(path: Path, rank: int) -> Path:
    """The file of one rank: `report.json`, for the others `report.rank1.json`."""
    return path if rank == 0 else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def check_writable(path: Path) -> None:
    """Make sure that a report can be written there, before a long run starts.

    Raises:
        OutputError: the folder is missing, or the place cannot be written to.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        if _is_special(path):
            path.open("ab").close()
        else:
            _write_beside(path.resolve(), "").unlink()
    except OSError as error:
        raise OutputError(_cannot_write(path, error)) from error


def write_json(report: Report, path: Path, cwd: Path) -> None:
    """Write the report in format version 1; a reader sees all of it or nothing.

    Raises:
        OutputError: the file cannot be written.
    """
    text = json.dumps(to_json(report, cwd), indent=1, allow_nan=False) + "\n"
    try:
        if _is_special(path):  # a pipe or /dev/null is written to, never replaced
            path.write_text(text, encoding="utf-8")
        else:
            target = path.resolve()
            os.replace(_write_beside(target, text), target)
    except OSError as error:
        raise OutputError(_cannot_write(path, error)) from error


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _write_beside(path: Path, text: str) -> Path:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    return beside


def _cannot_write(path: Path, error: OSError) -> str:
    return (
        f"gradwright: --json needs a file that can be written, but {str(path)!r} cannot: "
        f"{error.strerror}. Create its folder or name another."
    )
