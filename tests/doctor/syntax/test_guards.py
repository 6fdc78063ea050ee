from __future__ import annotations

import pytest

from gradwright.doctor.syntax.guards import guard
from tests.doctor.syntax.sources import edited, tree_from

CASES = [
    ("a()\nb()\n", 0, 0, "if x:\n    a()\nb()\n"),
    ("a()\nb()  # c\n", 0, 1, "if x:\n    a()\n    b()  # c\n"),
    ("a(\n  1)\n", 0, 0, "if x:\n    a(\n      1)\n"),
    ("a(); b()\n", 0, 0, "if x:\n    a()\nb()\n"),
]


@pytest.mark.parametrize(("text", "first", "last", "expected"), CASES)
def test_guard(text: str, first: int, last: int, expected: str) -> None:
    tree = tree_from(text)
    edits = guard(tree, tree.root.body[first], tree.root.body[last], "x")
    assert edited(tree, edits) == expected


def test_guard_refuses_statements_in_the_wrong_order() -> None:
    tree = tree_from("a()\nb()\n")
    assert guard(tree, tree.root.body[1], tree.root.body[0], "x") is None
