from __future__ import annotations

import pytest

from gradwright.doctor.syntax import remove_keyword, replace_argument, set_keyword
from tests.doctor.syntax.sources import call, code, edited, tree_from

SETS = [
    ("y = f(x)\n", "y = f(x, k=False)\n"),
    ("y = f()\n", "y = f(k=False)\n"),
    ("y = f( )\n", "y = f( k=False)\n"),
    ("y = f(x, k=True)\n", "y = f(x, k=False)\n"),
    ("y = f(x, k=(True))\n", "y = f(x, k=False)\n"),
    ("y = f(x,)\n", "y = f(x, k=False,)\n"),
    ("y = f((x))\n", "y = f((x), k=False)\n"),
    ("y = f(*x, **y)\n", "y = f(*x, k=False, **y)\n"),
    ("y = f(x for x in y)\n", None),
    ("y = f(\n    x,\n    y,  # two\n)\n", "y = f(\n    x,\n    y,  # two\n    k=False,\n)\n"),
    ("y = f(\n    x,\n    y\n)\n", "y = f(\n    x,\n    y,\n    k=False\n)\n"),
    ("y = f(x,\n      y)\n", "y = f(x,\n      y, k=False)\n"),
    ("y = f(\n    x, y\n)\n", "y = f(\n    x, y, k=False\n)\n"),
    ("é = f('ß')\r\n", "é = f('ß', k=False)\r\n"),
    ("y = f(\r\n\tx,\r\n)\r\n", "y = f(\r\n\tx,\r\n\tk=False,\r\n)\r\n"),
]


@pytest.mark.parametrize(("before", "after"), SETS)
def test_set_keyword(before: str, after: str | None) -> None:
    tree = tree_from(before)
    found = call(tree, before.partition("= ")[2].rstrip())
    assert edited(tree, set_keyword(tree, found, "k", "False")) == after


REMOVES = [
    ("y = f(x, k=1)\n", "y = f(x)\n"),
    ("y = f(k=1)\n", "y = f()\n"),
    ("y = f(k=1, x=2)\n", "y = f(x=2)\n"),
    ("y = f(x, k=1, z=2)\n", "y = f(x, z=2)\n"),
    ("y = f(x, k=(1),)\n", "y = f(x,)\n"),
    ("y = f(k=1,)\n", "y = f()\n"),
    ("y = f(\n    x,  # one\n    k=1\n)\n", "y = f(\n    x,  # one\n)\n"),
    ("y = f(\n    x,\n    k=1,  # gone\n)\n", "y = f(\n    x,\n)\n"),
    ("y = f(\n    x,\n    k=1,\n    z=2)\n", "y = f(\n    x,\n    z=2)\n"),
    ("y = f(x)\n", None),
]


@pytest.mark.parametrize(("before", "after"), REMOVES)
def test_remove_keyword(before: str, after: str | None) -> None:
    tree = tree_from(before)
    found = call(tree, before.partition("= ")[2].rstrip())
    assert edited(tree, remove_keyword(tree, found, "k")) == after


def test_replace_argument() -> None:
    tree = tree_from(
        code("""
        y = f((a), *b, k=c + 1)
    """)
    )
    found = call(tree, "f((a), *b, k=c + 1)")
    assert edited(tree, replace_argument(tree, found, 0, "d, e")) == "y = f((d, e), *b, k=c + 1)\n"
    assert edited(tree, replace_argument(tree, found, "k", "0")) == "y = f((a), *b, k=0)\n"
    assert replace_argument(tree, found, 1, "0") is None
    assert replace_argument(tree, found, 7, "0") is None
    assert replace_argument(tree, found, "j", "0") is None
