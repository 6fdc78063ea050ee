"""New texts of files as a unified diff for the terminal."""

import difflib
from collections.abc import Mapping
from pathlib import Path

from gradwright.diagnostic.charset import charset_for
from gradwright.diagnostic.names import display_name
from gradwright.diagnostic.source import decode, split_lines

_COLORS = {"-": "31", "+": "32", "@": "36"}


def diff(texts: Mapping[str, str], *, color: bool = False, encoding: str | None = None) -> str:
    """What changes in each file on disk when it gets its new text."""
    rows: list[str] = []
    for file, new in texts.items():
        old = decode(Path(file).read_bytes())
        name = display_name(file)
        rows += difflib.unified_diff(split_lines(old), split_lines(new), name, name, lineterm="")
    charset = charset_for(encoding)
    return "\n".join(_painted(charset.visible(row), color) for row in rows)


def _painted(row: str, color: bool) -> str:
    code = _COLORS.get(row[:1])
    return f"\x1b[{code}m{row}\x1b[0m" if color and code else row
