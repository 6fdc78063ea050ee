"""Source excerpts: the labelled lines of each file, with the labels under the code.

Labels keep the order in which things happened; each has its own row. A label over several lines
is marked on its first and on its last line, and its text stands under the last.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradwright.diagnostic.blocks import Block, Mark, blocks_of
from gradwright.diagnostic.cells import cell_count, wrap
from gradwright.diagnostic.clip import ShownLine, show_line
from gradwright.diagnostic.model import Diagnostic, Label
from gradwright.diagnostic.names import display_name
from gradwright.diagnostic.page import Line, Page, Piece, Style

LEAST_ROOM = 20
LEAST_TEXT = 24  # a label with less room than this beside its mark goes below it


def excerpts(diagnostic: Diagnostic, page: Page) -> list[Line]:
    """The rows of all files with labels, with a blank row between files."""
    blocks = blocks_of(diagnostic.labels)
    gutter = max([2, *(len(str(number)) for block in blocks for number in block.shown)])
    rows: list[Line] = []
    for index, block in enumerate(blocks):
        rows += [()] if rows else []
        rows += _heading(block, "" if index else diagnostic.context, gutter, page)
        rows += _block_rows(block, gutter, page)
    return rows


def _heading(block: Block, context: str, gutter: int, page: Page) -> list[Line]:
    """The file's name, and at the right where in the run this happened."""
    if not block.shown and not context:
        return []
    name = page.charset.visible(display_name(block.file, page.cwd)) if block.shown else ""
    indent = " " * (gutter + 1)
    if not context:
        return [(Piece(indent + name, "strong"),)]
    context = page.charset.visible(context)
    # 2 cells short of the margin: the right edge of a terminal is easily lost
    free = page.width - 2 - cell_count(indent + name + context)
    gap = " " * max(2, free) if name else ""
    return [(Piece(indent + name, "strong"), Piece(gap + context, "dim"))]


def _block_rows(block: Block, gutter: int, page: Page) -> list[Line]:
    rows: list[Line] = []
    previous = 0
    for number in block.shown:
        if previous and number > previous + 1:
            rows.append((Piece(" " * (gutter + 1) + page.charset.gap, "dim"),))
        rows += _line_rows(block, number, gutter, page)
        previous = number
    for label in block.lost:
        rows += _lost_rows(label, gutter, page)
    return rows


def _line_rows(block: Block, number: int, gutter: int, page: Page) -> list[Line]:
    """One source line and the rows of its marks."""
    marks = [mark for mark in block.marks if mark.line == number]
    room = max(LEAST_ROOM, (page.columns or page.width) - gutter - 3)
    shown = show_line(block.source[number - 1].rstrip(), room, page.charset, _focus(marks))
    code = Piece(f"{number:>{gutter}} {page.charset.bar} ", "dim")
    rows: list[Line] = (
        [(code, Piece(shown.text))] if shown.text else [(Piece(code.text.rstrip(), "dim"),)]
    )
    for mark in marks:
        rows += _mark_rows(mark, shown, gutter, page)
    return rows


def _focus(marks: Sequence[Mark]) -> tuple[int, int]:
    """The columns to keep in view: from the primary mark (else the first) to the furthest end."""
    if not marks:
        return (0, 0)
    start = min(marks, key=lambda mark: (not mark.label.primary, mark.label.order)).start
    return (start, max(mark.end for mark in marks))


def _mark_rows(mark: Mark, shown: ShownLine, gutter: int, page: Page) -> list[Line]:
    """The underline of a mark, with the label's number and text beside it or below."""
    primary = mark.label.primary
    style: Style = "primary" if primary else "secondary"
    edge = Piece(" " * (gutter + 1) + page.charset.bar + " ", "dim")
    start = shown.cell_at(mark.start)
    rule = ("^" if primary else page.charset.rule) * max(1, shown.cell_at(mark.end) - start)
    underline = Piece(" " * start + rule, style)
    if not mark.with_text:
        return [(edge, underline)]
    number = f"{mark.label.order} "
    beside = start + len(rule) + 2 + len(number)
    room = None if page.columns is None else page.columns - len(edge.text) - beside
    text = wrap(mark.label.text, room, page.charset)
    if room is None or room >= LEAST_TEXT or (len(text) == 1 and cell_count(text[0]) <= room):
        first = Piece(underline.text + f"  {number}{text[0]}", style)
        return [(edge, first), *((edge, Piece(" " * beside + more, style)) for more in text[1:])]
    return [(edge, underline), *_below(mark.label, edge, style, page)]


def _below(label: Label, edge: Piece, style: Style, page: Page) -> list[Line]:
    number = f"{label.order} "
    assert page.columns is not None
    text = wrap(
        label.text, max(LEAST_TEXT, page.columns - len(edge.text) - len(number)), page.charset
    )
    heads = [number, *[" " * len(number)] * (len(text) - 1)]
    return [(edge, Piece(head + line, style)) for head, line in zip(heads, text, strict=True)]


def _lost_rows(label: Label, gutter: int, page: Page) -> list[Line]:
    """A label whose source cannot be shown: its place in words."""
    style: Style = "primary" if label.primary else "secondary"
    place = page.charset.visible(f"{display_name(label.span.file, page.cwd)}:{label.span.line}")
    indent = " " * (gutter + 1)
    text = wrap(f"{label.order} {label.text}", None, page.charset)
    return [
        (Piece(indent + place + "  ", "strong"), Piece(text[0], style)),
        *((Piece(" " * (len(indent + place) + 2) + more, style),) for more in text[1:]),
    ]
