"""A generator does not keep its block open while it waits."""

import ast

import pytest

from gradwright.diagnostic import apply
from gradwright.doctor.syntax.narrowed import decorate_generator, yields_outside
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


HEAD = "import torch\n\n\n"
DECORATED = [
    (
        "def f(x):\n    with torch.no_grad():\n        for one in x:\n            yield net(one)\n",
        "@torch.no_grad()\ndef f(x):\n    for one in x:\n        yield net(one)\n",
    ),
    (
        "def f(n):\n    x = torch.zeros(n)\n    with torch.no_grad():\n        yield net(x)\n",
        "@torch.no_grad()\ndef f(n):\n    x = torch.zeros(n)\n    yield net(x)\n",
    ),
    # what stands outside would no longer be recorded
    ("def f(x):\n    y = net(x)\n    with torch.no_grad():\n        yield y\n", None),
    # torch's decorator knows generators, but not those of `async def`
    ("async def f(x):\n    with torch.no_grad():\n        yield x\n", None),
    ("def f(x):\n    with torch.no_grad(), lock:\n        yield x\n", None),
]


@pytest.mark.parametrize(("before", "after"), DECORATED)
def test_decorate_generator(before: str, after: str | None) -> None:
    tree = tree_from_text("data.py", HEAD + before)
    assert tree is not None
    block = next(node for node in ast.walk(tree.root) if isinstance(node, ast.With))

    edits = decorate_generator(tree, block, "torch.no_grad")

    assert (None if edits is None else apply(tree.text, edits)) == (
        None if after is None else HEAD + after
    )
