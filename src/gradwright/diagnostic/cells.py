"""How much room text takes in a terminal, where some characters are two cells wide."""

from __future__ import annotations

import unicodedata

from gradwright.diagnostic.charset import Charset
from gradwright.diagnostic.source import split_lines


def cell_count(text: str) -> int:
    """How many terminal cells ``text`` takes."""
    return len(text) if text.isascii() else sum(cells_of(char) for char in text)


def cells_of(char: str) -> int:
    """How many cells one character takes: 2 if wide, 0 if it combines with the one before."""
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def wrap(text: str, width: int | None, charset: Charset, *, reflow: bool = False) -> list[str]:
    """``text`` as visible lines of at most ``width`` cells (None: no limit).

    A word that is longer than a line overflows. The text's own newlines stay; with ``reflow`` they
    give way when a line is too long, as in prose that was broken for a wider page.
    """
    shown = [charset.visible(line.rstrip()) for line in split_lines(text)]
    if reflow and width is not None and any(cell_count(line) > width for line in shown):
        shown = _joined(shown)
    return [line for paragraph in shown for line in _wrap_paragraph(paragraph, width)] or [""]


def _joined(lines: list[str]) -> list[str]:
    """``lines`` with each line of prose added to the one before; lists and blank lines stay."""
    joined: list[str] = []
    for line in lines:
        if joined and joined[-1] and line and not line.startswith((" ", "-", "*")):
            joined[-1] += " " + line
        else:
            joined.append(line)
    return joined


def _wrap_paragraph(text: str, width: int | None) -> list[str]:
    if width is None or cell_count(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split(" "):
        if lines and cell_count(lines[-1]) + 1 + cell_count(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
