"""Small sources as trees, and what edits make of them."""

from __future__ import annotations

import ast
from textwrap import dedent

from gradwright.diagnostic.edits import apply
from gradwright.diagnostic.model import Edit
from gradwright.doctor.syntax import SourceTree, statement_at, tree_from_text


def tree_from(text: str) -> SourceTree:
    tree = tree_from_text("program.py", text)
    assert tree is not None
    return tree


def code(text: str) -> str:
    """A text without its common indentation and its first newline."""
    return dedent(text).removeprefix("\n")


def edited(tree: SourceTree, edits: tuple[Edit, ...] | None) -> str | None:
    return None if edits is None else apply(tree.text, edits)


def at(tree: SourceTree, start: str) -> ast.stmt:
    """The statement whose text starts so."""
    found = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.stmt) and tree.source(node).startswith(start)
    ]
    assert found, start
    return found[0]


def expr(tree: SourceTree, text: str, number: int = 0) -> ast.expr:
    """The n-th expression with this text."""
    found = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.expr) and tree.source(node) == text
    ]
    found.sort(key=tree.start)
    return found[number]


def call(tree: SourceTree, text: str) -> ast.Call:
    found = expr(tree, text)
    assert isinstance(found, ast.Call)
    return found


def line(tree: SourceTree, number: int) -> ast.stmt:
    found = statement_at(tree, number)
    assert found is not None
    return found
