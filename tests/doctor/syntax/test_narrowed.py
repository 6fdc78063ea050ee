"""A generator yields when its block has ended."""

import ast

import pytest

from gradwright.diagnostic import apply
from gradwright.doctor.syntax.narrowed import yields_outside
from gradwright.doctor.syntax.tree import tree_from_text

CASES = [
    (
        "def f():\n    with no_grad():\n        x = g()  # kept\n        for one in x:\n"
        "            yield one\n        done()\n    return\n",
        "def f():\n    with no_grad():\n        x = g()  # kept\n    for one in x:\n"
        "        yield one\n    done()\n    return\n",
    ),
    ("def f():\n    with no_grad():\n        yield g()\n", None),
    ("def f():\n    with no_grad():\n        x = g()\n", None),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_yields_outside(before: str, after: str | None) -> None:
    tree = tree_from_text("data.py", before)
    assert tree is not None
    block = next(node for node in ast.walk(tree.root) if isinstance(node, ast.With))

    edits = yields_outside(tree, block)

    assert (None if edits is None else apply(before, edits)) == after
