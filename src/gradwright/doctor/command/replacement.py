"""Replace source files by new texts: all of them or none, and never the only copy of something."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradwright.diagnostic.source import encoding_of

GitState = Literal["unknown", "clean", "changed"]


class RefusedError(Exception):
    """Files that are left as they are; the message is complete."""


@dataclass(frozen=True, slots=True)
class _Replacement:
    path: Path  # no symbolic link: the link stays, its target changes
    old: bytes
    new: bytes
    git: GitState

    @property
    def prepared(self) -> Path:
        """Where the new content waits, beside the file."""
        return self.path.with_name(f".{self.path.name}.{os.getpid()}")


def replace_files(texts: Mapping[str, str], *, force: bool = False) -> list[Path]:
    """Write the new text of each file; returns the copies kept of files that git cannot bring back.

    Raises:
        RefusedError: a file has uncommitted changes and `force` is not given, or cannot be
            written. No file has changed then.
    """
    planned = [_plan(file, text) for file, text in texts.items()]
    for each in planned:
        if each.git == "changed" and not force:
            raise RefusedError(
                f"gradwright: --fix needs a file without uncommitted changes, and git has some in "
                f"{each.path.name!r}. Commit or stash them, or add --force."
            )
    try:
        return _write(planned)
    except OSError as error:
        raise RefusedError(f"gradwright: --fix cannot write the files: {error}.") from error
    finally:
        for each in planned:
            each.prepared.unlink(missing_ok=True)


def _plan(file: str, text: str) -> _Replacement:
    path = Path(file).resolve()
    if not os.access(path, os.W_OK):
        raise RefusedError(f"gradwright: --fix needs a file that it may write: {file!r} is not.")
    old = path.read_bytes()
    return _Replacement(path, old, text.encode(encoding_of(old)), git_state(path))


def git_state(path: Path) -> GitState:
    """Whether git has this very content, something older, or does not know the file."""
    command = ["git", "status", "--porcelain", "--ignored", "--", path.name]
    try:
        result = subprocess.run(
            command,
            cwd=path.parent,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError:
        return "unknown"
    if result.returncode != 0 or result.stdout.startswith(("??", "!!")):
        return "unknown"
    return "changed" if result.stdout else "clean"


def _write(planned: list[_Replacement]) -> list[Path]:
    for each in planned:
        each.prepared.write_bytes(each.new)
        shutil.copymode(each.path, each.prepared)
    copies = [_keep_copy(each.path) for each in planned if each.git != "clean"]
    done: list[_Replacement] = []
    try:
        for each in planned:
            os.replace(each.prepared, each.path)
            done.append(each)
    except OSError:
        for each in done:
            each.path.write_bytes(each.old)
        raise
    return copies


def _keep_copy(path: Path) -> Path:
    copy = path.with_name(f"{path.name}.orig")
    number = 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.orig{number}")
    shutil.copy2(path, copy)
    return copy
