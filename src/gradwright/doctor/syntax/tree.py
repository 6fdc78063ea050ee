"""A source file as text, syntax tree and parents, with positions in characters."""

from __future__ import annotations

import ast
import linecache
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from gradwright.diagnostic.edits import keep_ends
from gradwright.diagnostic.model import Span

Positioned = ast.expr | ast.stmt | ast.keyword | ast.excepthandler | ast.alias | ast.pattern


@dataclass(frozen=True, slots=True, eq=False)
class SourceTree:
    """A parsed file. Offsets are counted in characters of `text`, from 0."""

    file: str
    text: str
    root: ast.Module
    lines: tuple[str, ...]  # each with its line ending
    starts: tuple[int, ...]  # offset of each line, then the length of the text
    parents: Mapping[ast.AST, ast.AST]

    @property
    def newline(self) -> str:
        """The line ending of the first line; `"\\n"` in a file of one line."""
        first = self.lines[0] if self.lines else ""
        return next((ending for ending in ("\r\n", "\n", "\r") if first.endswith(ending)), "\n")

    def offset(self, line: int, byte_column: int) -> int:
        """Offset of a position as `ast` and code objects give it: columns in UTF-8 bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return self.starts[line - 1] + byte_column
        return self.starts[line - 1] + len(text.encode()[:byte_column].decode(errors="ignore"))

    def start(self, node: Positioned) -> int:
        """Offset of the first character of a node."""
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: Positioned) -> int:
        """Offset just after the last character of a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def source(self, node: Positioned) -> str:
        """The text of a node, as written."""
        return self.text[self.start(node) : self.end(node)]

    def line_of(self, offset: int) -> int:
        """The line, from 1, that holds the character at `offset`."""
        return min(bisect_right(self.starts, offset), max(len(self.lines), 1))

    def span(self, start: int, end: int) -> Span:
        """The Span between two offsets."""
        line, end_line = self.line_of(start), self.line_of(end)
        columns = start - self.starts[line - 1], end - self.starts[end_line - 1]
        return Span(self.file, line, columns[0], end_line, columns[1])


def tree_of(file: str) -> SourceTree | None:
    """The tree of a file, or of a notebook cell or string known to `linecache`.

    None where there is no source or it does not parse.
    """
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        text = "".join(linecache.getlines(file))
        return tree_from_text(file, text) if text else None
    return _tree_of_version(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=128)
def _tree_of_version(file: str, modified: int, size: int) -> SourceTree | None:
    try:
        with Path(file).open("rb") as stream:
            encoding, _ = tokenize.detect_encoding(stream.readline)
        with Path(file).open(encoding=encoding, newline="") as stream_of_text:
            return tree_from_text(file, stream_of_text.read())
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


@lru_cache(maxsize=128)
def tree_from_text(file: str, text: str) -> SourceTree | None:
    """The tree of a text; None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape is the user's, not news
            root = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = keep_ends(text)
    starts = tuple(accumulate(map(len, lines), initial=0))
    parents = {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    return SourceTree(file, text, root, tuple(lines), starts, parents)
