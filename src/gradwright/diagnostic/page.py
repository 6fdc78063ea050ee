"""What a diagnostic is laid out on: a page's width and characters, and styled text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from gradwright.diagnostic.charset import UTF8, Charset

Style = Literal[
    "plain", "strong", "dim", "error", "warning", "note", "primary", "secondary", "removed", "added"
]


class Piece(NamedTuple):
    """A run of text in one style."""

    text: str
    style: Style = "plain"


Line = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Where a diagnostic is laid out.

    ``width`` holds for prose and source. Labels and titles wrap only at ``columns``, the width of
    a real terminal; without one they run on, which reads better in logs.
    """

    width: int = 100
    columns: int | None = None
    cwd: Path | None = None
    charset: Charset = UTF8
