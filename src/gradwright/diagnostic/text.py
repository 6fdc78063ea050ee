"""Diagnostics and reports as text for a terminal or a log."""

from __future__ import annotations

from pathlib import Path

from gradwright.diagnostic.cells import wrap
from gradwright.diagnostic.charset import charset_for
from gradwright.diagnostic.excerpt import excerpts
from gradwright.diagnostic.model import Diagnostic, Report
from gradwright.diagnostic.page import Line, Page, Piece, Style
from gradwright.diagnostic.sections import Section, header, sections, stand_in
from gradwright.diagnostic.verdict import verdict

KEY_CELLS = 5
_ANSI: dict[Style, str] = {
    "strong": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "primary": "1;31",
    "secondary": "36",
    "removed": "31",
    "added": "32",
}


def render(
    diagnostic: Diagnostic,
    *,
    width: int = 100,
    color: bool = False,
    cwd: Path | None = None,
    columns: int | None = None,
    encoding: str | None = None,
) -> str:
    """``diagnostic`` as text without a newline at the end.

    Prose and source keep to ``width``. Labels and titles run on, unless ``columns`` gives the
    width of a real terminal. ``encoding`` is the stream's (None: UTF-8): what it cannot show is
    drawn in ASCII or escaped. File names below ``cwd`` (None: the current directory) are shortened.
    """
    page = Page(min(width, columns or width), columns, cwd, charset_for(encoding))
    return "\n".join(_paint(line, color) for line in _layout(diagnostic, page))


def render_report(
    report: Report,
    *,
    width: int = 100,
    color: bool = False,
    cwd: Path | None = None,
    columns: int | None = None,
    encoding: str | None = None,
) -> str:
    """All diagnostics of ``report``, or one line that says nothing was found."""
    if not report.diagnostics:
        return charset_for(encoding).visible(verdict(report, cwd))
    shown = [
        render(each, width=width, color=color, cwd=cwd, columns=columns, encoding=encoding)
        for each in report.diagnostics
    ]
    return "\n\n\n".join(shown)


def _layout(diagnostic: Diagnostic, page: Page) -> list[Line]:
    rows = [header(diagnostic, page)]
    shown = excerpts(diagnostic, page) or stand_in(diagnostic, page)
    rows += [(), *shown] if shown else []
    for section in sections(diagnostic, page):
        rows += [(), *_section_rows(section, page)]
    return rows


def _section_rows(section: Section, page: Page) -> list[Line]:
    limit = page.width if section.flows else page.columns
    room = None if limit is None else max(1, limit - KEY_CELLS)
    text = wrap(section.text, room, page.charset, reflow=section.flows)
    first = (Piece(f"{section.key:<{KEY_CELLS}}", "strong"), Piece(text[0]))
    indent = " " * KEY_CELLS
    return [first, *((Piece(indent + line if line else ""),) for line in text[1:]), *section.rows]


def _paint(line: Line, color: bool) -> str:
    if not color:
        return "".join(piece.text for piece in line)
    return "".join(_painted(piece) for piece in line)


def _painted(piece: Piece) -> str:
    code = _ANSI.get(piece.style)
    return f"\x1b[{code}m{piece.text}\x1b[0m" if code and piece.text else piece.text
