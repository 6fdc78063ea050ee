"""An edit as rows of a diff: the lines taken out and put in, with the numbers of the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from gradwright.diagnostic.model import Edit
from gradwright.diagnostic.source import split_lines


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff; ``column`` is where it begins to differ from its counterpart."""

    number: int
    sign: Literal["-", "+"]
    text: str
    column: int = 0


def diff_rows(edit: Edit, source: Sequence[str] | None) -> list[DiffRow]:
    """The rows of ``edit``; lines that stay the same are left out.

    ``source`` are the lines of the file before the edit, None when they cannot be had.
    """
    new = split_lines(edit.replacement)
    if source is None or edit.end_line > len(source):
        return _blind_rows(edit, new)
    old = list(source[edit.line - 1 : edit.end_line])
    rows: list[DiffRow] = []
    for tag, start, stop, new_start, new_stop in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            rows += _change(edit.line + start, old[start:stop], new[new_start:new_stop])
    return rows


def _change(number: int, old: Sequence[str], new: Sequence[str]) -> list[DiffRow]:
    columns = [_common(*pair) for pair in zip_longest(old, new, fillvalue="")]
    return [
        *(DiffRow(number + i, "-", text, columns[i]) for i, text in enumerate(old)),
        *(DiffRow(number + i, "+", text, columns[i]) for i, text in enumerate(new)),
    ]


def _common(old: str, new: str) -> int:
    """How many characters the two have in common at their beginning, by halving."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old.startswith(new[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _blind_rows(edit: Edit, new: Sequence[str]) -> list[DiffRow]:
    taken = [DiffRow(line, "-", "...") for line in range(edit.line, edit.end_line + 1)]
    return [*taken, *(DiffRow(edit.line + i, "+", text) for i, text in enumerate(new))]
