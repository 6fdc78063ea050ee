"""Diagnostics and reports as HTML fragments for notebooks: no scripts, no outside files.

Styles are inline, because notebooks on the web drop ``<style>``. Colours are chosen to read on
light and on dark pages; text keeps the page's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from gradwright.diagnostic.cells import wrap
from gradwright.diagnostic.charset import UTF8
from gradwright.diagnostic.excerpt import excerpts
from gradwright.diagnostic.model import Diagnostic, Report
from gradwright.diagnostic.page import Line, Page, Style
from gradwright.diagnostic.sections import Section, header, sections, stand_in
from gradwright.diagnostic.verdict import verdict

_CSS: dict[Style, str] = {
    "strong": "font-weight:600",
    "dim": "opacity:.6",
    "error": "color:#d1383d;font-weight:700",
    "warning": "color:#b7791f;font-weight:700",
    "note": "color:#2b7bb9;font-weight:700",
    "primary": "color:#d1383d;font-weight:600",
    "secondary": "color:#2b7bb9",
    "removed": "color:#d1383d",
    "added": "color:#2f8f4e",
}
_PRE = "margin:.4em 0;overflow-x:auto;line-height:1.35;background:none;white-space:pre"


def render(diagnostic: Diagnostic, cwd: Path | None = None) -> str:
    """``diagnostic`` as one ``<div>``; everything that came from the program is escaped."""
    page = Page(cwd=cwd)
    rows = excerpts(diagnostic, page) or stand_in(diagnostic, page)
    parts = [
        f"<div>{_line(header(diagnostic, page))}</div>",
        _pre(rows),
        *(_section(section) for section in sections(diagnostic, page)),
    ]
    return f'<div class="gradwright-diagnostic">{"".join(parts)}</div>'


def render_report(report: Report, cwd: Path | None = None) -> str:
    """All diagnostics of ``report``, or one line that says nothing was found."""
    if not report.diagnostics:
        return f'<div class="gradwright-report">{escape(UTF8.visible(verdict(report, cwd)))}</div>'
    shown = "<hr>".join(render(diagnostic, cwd) for diagnostic in report.diagnostics)
    return f'<div class="gradwright-report">{shown}</div>'


def _section(section: Section) -> str:
    text = "<br>".join(_prose(line) for line in wrap(section.text, None, UTF8))
    key = f'<b style="flex:0 0 3em">{section.key}</b>'
    body = f'<div style="min-width:0">{text}{_pre(section.rows)}</div>'
    return f'<div style="display:flex;margin:.5em 0">{key}{body}</div>'


def _prose(text: str) -> str:
    """Escaped prose in which what stands between backticks is code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a backtick without its partner
        return escape(text)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _pre(rows: Sequence[Line]) -> str:
    if not rows:
        return ""
    body = "\n".join(_line(row) for row in rows)
    return f'<pre style="{_PRE}">{body}</pre>'


def _line(line: Line) -> str:
    return "".join(_piece(piece.text, piece.style) for piece in line)


def _piece(text: str, style: Style) -> str:
    css = _CSS.get(style)
    return f'<span style="{css}">{escape(text)}</span>' if css else escape(text)
