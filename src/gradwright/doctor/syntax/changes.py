"""From changed characters to edited lines."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec

from gradwright.diagnostic.edits import apply
from gradwright.diagnostic.model import Edit
from gradwright.doctor.syntax.tree import SourceTree

P = ParamSpec("P")
Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Replaces the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str


class Unsafe(Exception):
    """The rewrite cannot be done without guessing. Never leaves this package."""


def rewrite(
    changes: Callable[Concatenate[SourceTree, P], Iterable[Change]],
) -> Callable[Concatenate[SourceTree, P], Edits | None]:
    """Make a function that lists changes into one that returns edits, or None where unsafe."""

    @wraps(changes)
    def edits(tree: SourceTree, /, *args: P.args, **kwargs: P.kwargs) -> Edits | None:
        try:
            return edits_of(tree, list(changes(tree, *args, **kwargs)))
        except Unsafe:
            return None

    return edits


def edits_of(tree: SourceTree, changes: Sequence[Change]) -> Edits | None:
    """The edits that make these changes; None if they overlap, do nothing or do not parse."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    if any(after.start < before.end for before, after in pairwise(ordered)):
        return None
    edits = tuple(_edit(tree, *group) for group in _by_lines(tree, ordered))
    edits = tuple(edit for edit in edits if edit.replacement != _replaced(tree, edit))
    return edits if edits and _compiles(apply(tree.text, edits)) else None


def combine(tree: SourceTree, *several: Edits | None) -> Edits | None:
    """The edits of several rewrites of one file as one; None if one is None or they collide."""
    changes: list[Change] = []
    for edits in several:
        if edits is None:
            return None
        changes.extend(_narrowed(tree, edit) for edit in edits)
    return edits_of(tree, changes)


def _narrowed(tree: SourceTree, edit: Edit) -> Change:
    """An edit as a change of only the characters that differ."""
    old, new = _replaced(tree, edit), edit.replacement
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start = tree.starts[edit.line - 1] + head
    return Change(start, start + len(old) - head - tail, new[head : len(new) - tail])


def _common(first: str, second: str) -> int:
    """The number of characters two texts have in common at their start."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _replaced(tree: SourceTree, edit: Edit) -> str:
    return "".join(tree.lines[edit.line - 1 : edit.end_line])


def _by_lines(
    tree: SourceTree, ordered: Sequence[Change]
) -> list[tuple[int, int, tuple[Change, ...]]]:
    """Changes grouped by the lines they touch: first line, last line, changes."""
    groups: list[tuple[int, int, tuple[Change, ...]]] = []
    for change in ordered:
        first, last = tree.line_of(change.start), _last_line(tree, change)
        if groups and first <= groups[-1][1]:
            start, end, before = groups.pop()
            groups.append((start, max(end, last), (*before, change)))
        else:
            groups.append((first, last, (change,)))
    return groups


def _last_line(tree: SourceTree, change: Change) -> int:
    last = tree.line_of(max(change.start, change.end - 1))
    ends_line = change.end > change.start and tree.text[change.end - 1] in "\r\n"
    whole = not change.text and change.start in tree.starts
    joins = ends_line and not whole and not change.text.endswith(("\n", "\r"))
    return min(last + 1, len(tree.lines)) if joins else last


def _edit(tree: SourceTree, first: int, last: int, changes: Sequence[Change]) -> Edit:
    """One edit of whole lines. A last line without an ending gets one."""
    at, pieces = tree.starts[first - 1], []
    for change in changes:
        pieces += [tree.text[at : change.start], change.text]
        at = change.end
    text = "".join([*pieces, tree.text[at : tree.starts[last]]])
    if text and not text.endswith(("\n", "\r")):
        text += tree.newline
    return Edit(tree.file, first, last, text)


def _compiles(text: str) -> bool:
    """True if the text parses and its statements stand where Python allows them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # notebooks await in cells
            compile(text, "<rewritten>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
