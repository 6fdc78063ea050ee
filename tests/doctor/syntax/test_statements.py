from __future__ import annotations

import pytest

from gradwright.doctor.syntax import (
    append_method,
    combine,
    delete_statement,
    insert_after,
    insert_before,
    replace_statement,
    set_keyword,
    tree_from_text,
)
from tests.doctor.syntax.sources import at, call, edited, expr, tree_from

DELETES = [
    ("x = 1  # gone\ny\n", "y\n"),
    ("x = 1; y\n", "y\n"),
    ("y; x = 1\n", "y\n"),
    ("y; x = 1;\n", "y;\n"),
    ("if c: x = 1\n", "if c: pass\n"),
    ("if c:\n\tx = 1  # note\n", "if c:\n\tpass  # note\n"),
    ("if c:\n    x = f(\n        1)\n    y\n", "if c:\n    y\n"),
    ("if a: b\nelse: x = 1\n", "if a: b\nelse: pass\n"),
    ("try:\n    x = 1\nfinally:\n    y\n", "try:\n    pass\nfinally:\n    y\n"),
    ("y\r\nx = 1\r\n", "y\r\n"),
    ("y\nx = 1", "y\n"),
    ("y; \\\nx = 1\nz\n", "y\nz\n"),
    ("match a:\n    case 1: x = 1\n", "match a:\n    case 1: pass\n"),
]


@pytest.mark.parametrize(("before", "after"), DELETES)
def test_delete(before: str, after: str) -> None:
    tree = tree_from(before)
    assert edited(tree, delete_statement(tree, at(tree, "x = "))) == after


INSERTS = [
    ("x = 1  # note\n", "n()\nx = 1  # note\n", "x = 1  # note\nn()\n"),
    ("if c: x = 1\n", "if c: n(); x = 1\n", "if c: x = 1; n()\n"),
    ("a; x = 1; b\n", "a; n(); x = 1; b\n", "a; x = 1; n(); b\n"),
    ("if c:\n\tx = 1\ny\n", "if c:\n\tn()\n\tx = 1\ny\n", "if c:\n\tx = 1\n\tn()\ny\n"),
    ("a\r\nx = 1\r\n", "a\r\nn()\r\nx = 1\r\n", "a\r\nx = 1\r\nn()\r\n"),
    ("x = 1", "n()\nx = 1", "x = 1\nn()"),
    ("x = (\n  1\n)\n", "n()\nx = (\n  1\n)\n", "x = (\n  1\n)\nn()\n"),
]


@pytest.mark.parametrize(("text", "before", "after"), INSERTS)
def test_insert(text: str, before: str, after: str) -> None:
    tree = tree_from(text)
    assert edited(tree, insert_before(tree, at(tree, "x = "), ["n()"])) == before
    assert edited(tree, insert_after(tree, at(tree, "x = "), ["n()"])) == after


def test_insert_blocks_and_refusals() -> None:
    tree = tree_from("def f():\n    return x\n\n@d\ndef g(): pass\n")
    lines = ["if c:", "    n()"]
    assert edited(tree, insert_before(tree, at(tree, "return"), lines)) == tree.text.replace(
        "    return", "    if c:\n        n()\n    return"
    )
    assert edited(tree, insert_before(tree, at(tree, "def g"), ["n()"])) == tree.text.replace(
        "@d", "n()\n@d"
    )
    assert insert_after(tree, at(tree, "return"), ["n()"]) is None
    tree = tree_from("if c: x = 1\nelif d: y = 1\n")
    assert insert_before(tree, at(tree, "x = 1"), lines) is None
    assert insert_before(tree, at(tree, "elif"), ["n()"]) is None
    assert insert_before(tree, at(tree, "x = 1"), ["not python ("]) is None


def test_replace_statement() -> None:
    tree = tree_from("if c: x = 1  # note\n")
    assert edited(tree, replace_statement(tree, at(tree, "x"), "y = 2")) == "if c: y = 2  # note\n"
    assert replace_statement(tree, at(tree, "x"), "x = 1") is None


def test_combine_edits_of_one_line() -> None:
    tree = tree_from("y = f(a) + b\nz\n")
    keyword = set_keyword(tree, call(tree, "f(a)"), "k", "1")
    detach = append_method(tree, expr(tree, "b"), ".detach()")
    gone = delete_statement(tree, at(tree, "z"))
    assert edited(tree, combine(tree, keyword, detach, gone)) == "y = f(a, k=1) + b.detach()\n"
    assert combine(tree, keyword, None) is None
    assert combine(tree, detach, delete_statement(tree, at(tree, "y"))) is None


def test_source_that_does_not_parse_has_no_tree() -> None:
    assert tree_from_text("a.py", "x = (\n") is None
    assert tree_from_text("a.py", "x\0") is None
