"""What a loop computes for each part of a state goes back into the state."""

import ast

import pytest

from gradwright.diagnostic import apply
from gradwright.doctor.syntax.stored_back import store_back
from gradwright.doctor.syntax.tree import tree_from_text

CASES = [
    (
        "for part in parts:\n    part = part.detach()\n",
        "for index, part in enumerate(parts):\n    parts[index] = part.detach()\n",
    ),
    (
        "for t in slots.values():\n    t = t.detach()\n",
        "for key, t in slots.items():\n    slots[key] = t.detach()\n",
    ),
    (
        "for name, t in slots.items():\n    t = t.detach()\n",
        "for name, t in slots.items():\n    slots[name] = t.detach()\n",
    ),
    ("for a, b in zip(x, y):\n    a = a.detach()\n", None),
    ("for part in make():\n    part = part.detach()\n", None),
]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_store_back(before: str, after: str | None) -> None:
    tree = tree_from_text("train.py", before)
    assert tree is not None
    loop = tree.root.body[0]
    assert isinstance(loop, ast.For)
    assignment = loop.body[0]
    assert isinstance(assignment, ast.Assign)

    edits = store_back(tree, loop, assignment)

    assert (None if edits is None else apply(before, edits)) == after
