"""Read the source text that a diagnostic shows, from disk or from where Python keeps it.

Reading never fails: a source that cannot be had is ``None``, an undecodable byte is U+FFFD.
Lines end where Python's tokenizer ends them (``\\n``, ``\\r\\n``, ``\\r``), nowhere else.
"""

from __future__ import annotations

import io
import linecache
import os
import re
import stat
import tokenize
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

_LINE_END = re.compile(r"\r\n|\r|\n")


def lines_of(file: str) -> Sequence[str] | None:
    """The lines of ``file`` without their ends, or None when there is no source to show.

    Covers files on disk, notebook cells and code whose maker registered it in `linecache`.
    """
    signature = _signature(file)
    if signature is None:
        return _registered_lines(file)
    return _lines_on_disk(file, signature)


def decode(data: bytes) -> str:
    """The text of a source file, by PEP 263; bytes that do not fit are U+FFFD."""
    try:
        return data.decode(encoding_of(data), errors="replace")
    except UnicodeError:  # a few codecs (idna, undefined) have no "replace"
        return data.decode("utf-8", errors="replace")


def encoding_of(data: bytes) -> str:
    """The encoding a source file declares by BOM or cookie; ``utf-8`` when that makes no sense."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        b" ".decode(encoding)  # a cookie may name a codec that is not for text, such as rot13
    except (SyntaxError, LookupError, UnicodeError):
        return "utf-8"
    return encoding


def split_lines(text: str) -> list[str]:
    """The lines of a source text without their ends."""
    lines = _LINE_END.split(text)
    if lines[-1] == "":
        lines.pop()
    return lines


def _signature(file: str) -> tuple[int, int] | None:
    """What changes when a regular file changes, or None when there is no such file."""
    try:
        facts = os.stat(file)
    except (OSError, ValueError):
        return None
    return (facts.st_mtime_ns, facts.st_size) if stat.S_ISREG(facts.st_mode) else None


@lru_cache(maxsize=32)
def _lines_on_disk(file: str, signature: tuple[int, int]) -> tuple[str, ...] | None:
    try:
        data = Path(file).read_bytes()
    except OSError:
        return None
    return tuple(split_lines(decode(data)))


def _registered_lines(file: str) -> tuple[str, ...] | None:
    if file not in linecache.cache:  # else it would search the import path, and open pipes
        return None
    lines = linecache.getlines(file)
    return tuple(split_lines("".join(lines))) if lines else None
