"""Which source lines an excerpt shows, and which part of them each label marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradwright.diagnostic.model import Label
from gradwright.diagnostic.source import lines_of

WHOLE_SPAN_LINES = 4  # a longer span shows its two ends only


@dataclass(frozen=True, slots=True)
class Mark:
    """The part of a label on one line: source columns ``start..end``.

    A label over several lines has several marks; its text goes with the last.
    """

    label: Label
    line: int
    start: int
    end: int
    with_text: bool


@dataclass(frozen=True, slots=True)
class Block:
    """One file's part of the excerpt. ``lost`` are the labels whose line cannot be shown."""

    file: str
    source: Sequence[str]
    marks: tuple[Mark, ...]
    lost: tuple[Label, ...]
    shown: tuple[int, ...]


def blocks_of(labels: Sequence[Label]) -> list[Block]:
    """One block per file, in the order of its first label."""
    ordered = sorted(labels, key=lambda label: label.order)
    return [_block(file, ordered) for file in dict.fromkeys(label.span.file for label in ordered)]


def _block(file: str, labels: Sequence[Label]) -> Block:
    mine = [label for label in labels if label.span.file == file]
    source = lines_of(file) or ()
    found = [label for label in mine if 1 <= label.span.line <= len(source)]
    return Block(
        file=file,
        source=source,
        marks=tuple(mark for label in found for mark in _marks(label, source)),
        lost=tuple(label for label in mine if label not in found),
        shown=tuple(sorted({line for label in found for line in _shown_lines(label, source)})),
    )


def _last_line(label: Label, source: Sequence[str]) -> int:
    span = label.span
    return min(max(span.end_line or span.line, span.line), len(source))


def _shown_lines(label: Label, source: Sequence[str]) -> Sequence[int]:
    first, last = label.span.line, _last_line(label, source)
    return range(first, last + 1) if last - first < WHOLE_SPAN_LINES else (first, last)


def _marks(label: Label, source: Sequence[str]) -> list[Mark]:
    first, last = label.span.line, _last_line(label, source)
    start = max(label.span.column, _indent(source[first - 1]))
    if last == first:
        return [Mark(label, first, start, _end(label, source[first - 1]), with_text=True)]
    indent, end = _indent(source[last - 1]), _end(label, source[last - 1])
    return [
        Mark(label, first, start, len(source[first - 1].rstrip()), with_text=False),
        Mark(label, last, indent, end, with_text=True),
    ]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _end(label: Label, text: str) -> int:
    end = label.span.end_column
    return len(text.rstrip()) if end is None else min(end, len(text))
