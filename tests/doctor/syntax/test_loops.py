from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import Loop, inline_into_use, move_into_loop
from tests.doctor.syntax.sources import at, code, edited, expr, tree_from


def innermost_loop(root: ast.AST) -> Loop:
    loops = [
        node for node in ast.walk(root) if isinstance(node, ast.For | ast.AsyncFor | ast.While)
    ]
    return loops[-1]


MOVES = [
    (
        "t = f(a)  # once\nprint()\nfor x in xs:\n    # go\n    g(t, x)\n",
        "print()\nfor x in xs:\n    # go\n    t = f(a)  # once\n    g(t, x)\n",
    ),
    ("t = f(a)\nfor x in xs: g(t)\n", "for x in xs: t = f(a); g(t)\n"),
    ("t = f(a); u = 1\nwhile c:\n\tg(t)\n", "u = 1\nwhile c:\n\tt = f(a)\n\tg(t)\n"),
    (
        "t = f(\n    a,\n)\nfor x in xs:\n    for y in ys:\n        g(t)\n",
        "for x in xs:\n    for y in ys:\n        t = f(\n            a,\n        )\n        g(t)\n",
    ),
    (
        "for x in xs:\n    t = f(x)\n    for y in ys:\n        g(t)\n    h(t)\n",
        "for x in xs:\n    for y in ys:\n        t = f(x)\n        g(t)\n    h(t)\n",
    ),
    (
        "self.t, u = f(a)\nfor x in xs:\n    g(self.t)\n",
        "for x in xs:\n    self.t, u = f(a)\n    g(self.t)\n",
    ),
    (
        "async def m():\n  t = await f(a)\n  async for x in xs:\n    g(t)\n",
        "async def m():\n  async for x in xs:\n    t = await f(a)\n    g(t)\n",
    ),
    (
        "t = f('''\nx''')\r\nfor x in xs:\r\n    g(t)\r\n",
        "for x in xs:\r\n    t = f('''\nx''')\r\n    g(t)\r\n",
    ),
    (
        "t = f(a)\nfor x in xs:\n    @d\n    def g(): t\n",
        "for x in xs:\n    t = f(a)\n    @d\n    def g(): t\n",
    ),
    ("t = f(x)\nfor x in xs:\n    g(t)\n", None),
    ("t = f(a)\nfor x in xs:\n    g(t)\n    a = 1\n", None),
    ("t = f(a)\nfor x in xs:\n    g(t)\n    a.add_(1)\n", None),
    ("t = f(a)\na = 2\nfor x in xs:\n    g(t)\n", None),
    ("t = f(a)\nfor x in xs:\n    t = g(t)\n", None),
    ("t = f(t)\nfor x in xs:\n    g(t)\n", None),
    ("t = f(a)\nprint(t)\nfor x in xs:\n    g(t)\n", None),
    ("t = f(a)\nfor x in t:\n    g(t)\n", None),
    ("t = f(a)\nwhile t > 0:\n    g(t)\n", None),
    ("t = f(a)\nfor x in xs:\n    g(x)\nprint(t)\n", None),
    ("if c:\n    t = f(a)\nfor x in xs:\n    g(t)\n", None),
    ("def h(): return t\nt = f(a)\nfor x in xs:\n    g(t)\n", None),
    (
        "def h(t): return t\nt = f(a)\nfor x in xs:\n    g(t)\n",
        "def h(t): return t\nfor x in xs:\n    t = f(a)\n    g(t)\n",
    ),
    ("t[0] = f(a)\nfor x in xs:\n    g(t)\n", None),
    ("t = (b := f(a))\nfor x in xs:\n    g(t)\n", None),
    ("t = f(a)\nfor x in xs:\n    match x:\n        case [a]:\n            g(t)\n", None),
]


@pytest.mark.parametrize(("before", "after"), MOVES)
def test_move_into_loop(before: str, after: str | None) -> None:
    tree = tree_from(before)
    statement = at(tree, "self.t" if before.startswith("self.t") else "t")
    assert edited(tree, move_into_loop(tree, statement, innermost_loop(tree.root))) == after


EMBED = """
def train(table):
    features = encode(embedder, table["cats"], nums=table["nums"])  # once
    for rows in batches:
        preds = model(features[rows])
"""


def test_inline_with_the_index_on_arguments() -> None:
    tree = tree_from(EMBED)
    use = expr(tree, "features[rows]")
    assert edited(tree, inline_into_use(tree, at(tree, "features"), use, [1, "nums"])) == code("""

        def train(table):
            for rows in batches:
                preds = model(encode(embedder, table["cats"][rows], nums=table["nums"][rows]))
    """)
    assert inline_into_use(tree, at(tree, "features"), use) is None
    assert inline_into_use(tree, at(tree, "features"), use, [5]) is None


INLINES = [
    ("e = f(*a)\nfor x in xs:\n    n = d(*e)\n", "for x in xs:\n    n = d(*f(*a))\n"),
    ("e = a + b\nn = e * 2\n", "n = (a + b) * 2\n"),
    ("e = f(a)\nn = e * 2\nprint(e)\n", "e = f(a)\nn = f(a) * 2\nprint(e)\n"),
    ("e = f(a)\na = 1\nn = e * 2\n", None),
    ("e = f(a)\na = e * 2\n", "a = f(a) * 2\n"),
    ("e = f(a)\nfor a in xs:\n    n = e * 2\n", None),
    ("e = f(a)\nfor x in xs:\n    n = e * 2\n    a = n\n", None),
    ("e = f(a)\nn = f'{e}'\n", None),
    ("e = (  # why\n    a + b\n)\nn = e * 2\n", "n = (  # why\n    a + b\n) * 2\n"),
]


@pytest.mark.parametrize(("before", "after"), INLINES)
def test_inline(before: str, after: str | None) -> None:
    tree = tree_from(before)
    use = expr(tree, "e", 1)
    assert edited(tree, inline_into_use(tree, tree.root.body[0], use)) == after
