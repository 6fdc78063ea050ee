"""The prose of a diagnostic: its header line, and the sections why, fix, or, not and more."""

from __future__ import annotations

from dataclasses import dataclass

from gradwright.diagnostic.cells import wrap
from gradwright.diagnostic.clip import show_line
from gradwright.diagnostic.diff import DiffRow, diff_rows
from gradwright.diagnostic.model import Diagnostic, Fix
from gradwright.diagnostic.names import display_name
from gradwright.diagnostic.page import Line, Page, Piece
from gradwright.diagnostic.source import lines_of

DIFF_INDENT = 7
LONGEST_DIFF_LINE = 240  # a diff is for copying: clipped only where no one copies by hand


@dataclass(frozen=True, slots=True)
class Section:
    """A keyword, its text, and the rows of a diff below it. ``flows``: wrap at the page's width."""

    key: str
    text: str
    flows: bool = True
    rows: tuple[Line, ...] = ()


def header(diagnostic: Diagnostic, page: Page) -> Line:
    """``error[GW101] graph used twice: what is wrong``."""
    title = page.charset.visible(f"{diagnostic.severity}[{diagnostic.code}]")
    summary = " ".join(f"{spoken_name(diagnostic)}: {diagnostic.summary}".split())
    return (Piece(title, diagnostic.severity), Piece(" " + page.charset.visible(summary), "strong"))


def stand_in(diagnostic: Diagnostic, page: Page) -> list[Line]:
    """What is shown where there are no labels: when it happened, and the tensors concerned."""
    facts = [diagnostic.context, ", ".join(diagnostic.affected)]
    indent = " " * 3
    texts = [line for fact in facts if fact for line in wrap(fact, page.width - 3, page.charset)]
    return [(Piece(indent + text),) for text in texts]


def spoken_name(diagnostic: Diagnostic) -> str:
    """The rule's name in words: ``graph-used-twice`` is "graph used twice"."""
    return diagnostic.name.replace("-", " ")


def sections(diagnostic: Diagnostic, page: Page) -> list[Section]:
    """The sections that have something to say, in the order they are shown."""
    keys = ["fix", *["or"] * len(diagnostic.fixes)]
    found = [
        Section("why", diagnostic.why),
        *(
            _fix(key, fix, diagnostic, page)
            for key, fix in zip(keys, diagnostic.fixes, strict=False)
        ),
        Section("not", diagnostic.avoid),
        Section("more", f"gradwright explain {diagnostic.code}"),
    ]
    return [section for section in found if section.text.strip()]


def _fix(key: str, fix: Fix, diagnostic: Diagnostic, page: Page) -> Section:
    rows = _diff(fix, diagnostic, page)
    title = fix.title.rstrip(" :") + (":" if rows else "")
    return Section(key, title, flows=False, rows=tuple(rows))


def _diff(fix: Fix, diagnostic: Diagnostic, page: Page) -> list[Line]:
    """The rows of all edits; file names are shown unless there is one file in all."""
    files = list(dict.fromkeys(edit.file for edit in fix.edits))
    named = {*files, *(label.span.file for label in diagnostic.labels)}
    lines: list[Line] = []
    for file in files:
        if len(named) > 1:
            name = page.charset.visible(display_name(file, page.cwd))
            lines.append((Piece(" " * (DIFF_INDENT - 2) + name, "strong"),))
        edits = sorted((e for e in fix.edits if e.file == file), key=lambda edit: edit.line)
        rows = [row for edit in edits for row in diff_rows(edit, lines_of(file))]
        digits = max([2, *(len(str(row.number)) for row in rows)])
        lines += [_diff_line(row, digits, page) for row in rows]
    return lines


def _diff_line(row: DiffRow, digits: int, page: Page) -> Line:
    focus = (row.column, row.column)
    text = show_line(row.text, LONGEST_DIFF_LINE, page.charset, focus).text
    number = f"{' ' * DIFF_INDENT}{row.number:>{digits}} "
    changed = Piece(f"{row.sign} {text}".rstrip(), "removed" if row.sign == "-" else "added")
    return (Piece(number, "dim"), changed)
