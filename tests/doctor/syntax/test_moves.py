from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax.moves import move_into_body
from tests.doctor.syntax.sources import at, edited, tree_from

LOOP = "for b in batches:\n    f(table[b])\n"
MOVES = [
    # the lines to move, by how they start; before; after
    (
        ["table ="],
        f"table = g(w)\n{LOOP}",
        "for b in batches:\n    table = g(w)\n    f(table[b])\n",
    ),
    (
        ["table =", "half ="],
        f"half = g(w)\nprint(1)\ntable = h(half)  # soft\n{LOOP}",
        "print(1)\nfor b in batches:\n    half = g(w)\n    table = h(half)  # soft\n"
        "    f(table[b])\n",
    ),
    (
        ["table ="],
        "table = g(b)\nfor b in batches:\n    f(table)\n",
        "for b in batches:\n    table = g(b)\n    f(table)\n",
    ),
    (
        ["table ="],
        "table = g(w)\nwith open(p) as s:\n    for b in s:\n        f(table)\n",
        "with open(p) as s:\n    for b in s:\n        table = g(w)\n        f(table)\n",
    ),
    (
        ["table ="],
        'table = g(w)\ndef closure():\n    """Again."""\n    f(table)\nrun(closure)\n',
        'def closure():\n    """Again."""\n    table = g(w)\n    f(table)\nrun(closure)\n',
    ),
    (["table ="], f"table = g(w)\nprint(table)\n{LOOP}", None),
    (["table ="], f"table = g(w)\nw = 2\n{LOOP}", None),
    (["table ="], "table = g(w)\nfor b in table:\n    f(table)\n", None),
    (["table ="], "table = g(w)\nfor b in batches:\n    w = f(table)\n", None),
    (["table ="], "table = g(w)\ndef closure():\n    f(table)\nprint(table)\n", None),
    (["table ="], f"table = g(table)\n{LOOP}", None),
    (["table ="], f"if c:\n    table = g(w)\n{LOOP}", None),
    (["table ="], "table = g(w)\nfor b in batches: f(table[b])\n", None),
    (["print("], f"print(1)\n{LOOP}", None),
    ([], LOOP, None),
]


@pytest.mark.parametrize(("starts", "before", "after"), MOVES)
def test_move_into_body(starts: list[str], before: str, after: str | None) -> None:
    tree = tree_from(before)
    owner = next(
        node for node in ast.walk(tree.root) if isinstance(node, ast.For | ast.FunctionDef)
    )

    moved = move_into_body(tree, [at(tree, start) for start in starts], owner)

    assert edited(tree, moved) == after
