"""Short names of files: relative to the working directory where they lie below it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_IPYTHON_CELL = re.compile(r"<ipython-input-(\d+)-[^>]*>")


def relative_name(file: str, cwd: Path | None = None) -> str:
    """``file`` without the directory ``cwd`` (default: the current one) in front.

    The text is cut, never normalised, so `absolute_name` gives the same text back.
    """
    directory = _prefix(cwd)
    rest = file.removeprefix(directory)
    cut = directory != "" and rest != file and _is_below(rest)
    return rest if cut else file


def absolute_name(file: str, cwd: Path | None = None) -> str:
    """The inverse of `relative_name`; names such as ``<string>`` stay as they are."""
    return _prefix(cwd) + file if _is_below(file) else file


def display_name(file: str, cwd: Path | None = None) -> str:
    """The name a person knows ``file`` by: a notebook cell by its number, a file by its path."""
    cell = _IPYTHON_CELL.fullmatch(file)
    if cell:
        return f"Cell In[{cell[1]}]"
    return _cell_name(file) or relative_name(file, cwd)


def _prefix(cwd: Path | None) -> str:
    try:
        directory = str(cwd if cwd is not None else Path.cwd())
    except OSError:  # the working directory has been deleted
        return ""
    return directory if directory.endswith(os.sep) else directory + os.sep


def _is_below(name: str) -> bool:
    return name != "" and not name.startswith("<") and not os.path.isabs(name)


def _cell_name(file: str) -> str | None:
    """The cell's number, from the IPython that runs this program if one does.

    ipykernel compiles a cell under a made-up path that means nothing to its writer.
    """
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(get_shell() if get_shell else None, "compile", None)
    describe = getattr(compiler, "format_code_name", None)
    found = describe(file) if describe else None
    return " ".join(found) if found else None
