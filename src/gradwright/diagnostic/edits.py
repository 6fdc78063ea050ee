"""Apply edits to source text, and find the edits between two texts.

Line ends are kept: a replacement written with ``\\n`` takes the line end of the lines it replaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from gradwright.diagnostic.model import Edit, Fix
from gradwright.diagnostic.source import encoding_of

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class EditError(ValueError):
    """Edits that do not fit the text they are for."""


def apply(text: str, edits: Sequence[Edit]) -> str:
    """``text`` after ``edits``, whose lines all count in the original text.

    Raises:
        EditError: an edit lies outside the text, overlaps another or lacks its last newline.
    """
    lines = keep_ends(text)
    ordered = sorted(edits, key=lambda edit: edit.line)
    _validate(lines, ordered)
    for edit in reversed(ordered):
        lines[edit.line - 1 : edit.end_line] = [_replacement(edit, lines)]
    return "".join(lines)


def apply_to_files(fix: Fix) -> dict[str, str]:
    """The new text of every file that ``fix`` edits; nothing is written.

    Write a text back in the encoding of its file (`source.encoding_of`), with ``newline=""``.

    Raises:
        EditError: a file cannot be read, or its edits do not fit it.
    """
    files = dict.fromkeys(edit.file for edit in fix.edits)
    return {file: _edited(file, [e for e in fix.edits if e.file == file]) for file in files}


def edits_between(file: str, old: str, new: str) -> tuple[Edit, ...]:
    """The edits that turn the text ``old`` of ``file`` into ``new``.

    Both texts have the same kind of line ends, after the last line too.

    Raises:
        EditError: ``old`` is empty, or only one of the texts ends with a newline.
    """
    before, after = keep_ends(old), keep_ends(new)
    if before == after:
        return ()
    if not before or (after and _end_of(before[-1]) != _end_of(after[-1])):
        raise EditError(
            f"edits of {file!r} need an old text with lines, and texts that end alike: "
            f"got {old[-10:]!r} and {new[-10:]!r} as their ends. Add the last newline first."
        )
    closed = [line if _end_of(line) else line + "\n" for line in after]
    return tuple(
        Edit(file, start + 1, stop, "".join(closed[new_start:new_stop]))
        for start, stop, new_start, new_stop in _changes(before, after)
    )


def keep_ends(text: str) -> list[str]:
    """The lines of ``text`` with their ends, split where Python's tokenizer splits."""
    return _LINE.findall(text)


def _edited(file: str, edits: Sequence[Edit]) -> str:
    try:
        data = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise EditError(f"cannot edit {file!r}: {error}. Make the change by hand.") from error
    encoding = encoding_of(data)
    try:
        text = apply(data.decode(encoding), edits)
        text.encode(encoding)
    except UnicodeError as error:
        raise EditError(
            f"cannot edit {file!r} in its encoding {encoding}: {error}. Make the change by hand."
        ) from error
    return text


def _validate(lines: Sequence[str], ordered: Sequence[Edit]) -> None:
    previous = 0
    for edit in ordered:
        where = f"the edit of lines {edit.line}..{edit.end_line} of {edit.file!r}"
        if not 1 <= edit.line <= edit.end_line <= len(lines):
            raise EditError(f"{where} needs lines within 1..{len(lines)}. Has the file changed?")
        if edit.line <= previous:
            raise EditError(
                f"{where} overlaps the edit that ends at line {previous}. Join the two."
            )
        if edit.replacement and not _end_of(edit.replacement):
            raise EditError(f"{where} needs a newline at its end: got {edit.replacement[-20:]!r}.")
        previous = edit.end_line


def _replacement(edit: Edit, lines: Sequence[str]) -> str:
    """The edit's replacement with the line ends of the text it goes into."""
    first, last = lines[edit.line - 1], lines[edit.end_line - 1]
    end = _end_of(first) or _end_of(lines[0]) or "\n"
    text = edit.replacement
    if end != "\n" and "\r" not in text:
        text = text.replace("\n", end)
    return text if _end_of(last) else text.removesuffix(_end_of(text))


def _end_of(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else line[-1:] if line.endswith(("\n", "\r")) else ""


def _changes(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """The changed ranges as (start, stop, new_start, new_stop), each with at least one old line."""
    changes: list[tuple[int, int, int, int]] = []
    for tag, start, stop, new_start, new_stop in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        if start == stop and start > 0:  # an insertion takes the line before it along
            start, new_start = start - 1, new_start - 1
        elif start == stop:
            stop, new_stop = stop + 1, new_stop + 1
        if changes and changes[-1][1] > start:  # both took the same line along
            start, _, new_start, _ = changes.pop()
        changes.append((start, stop, new_start, new_stop))
    return changes
