# ruff: noqa: E501 (a row of a table stays on its line)
from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import (
    With,
    grad_switch_to_block,
    swap_with_and_loop,
    unwrap_with,
    wrap_in_with,
)
from tests.doctor.syntax.sources import at, code, edited, tree_from


def first_with(root: ast.AST) -> With:
    return next(node for node in ast.walk(root) if isinstance(node, ast.With | ast.AsyncWith))


T = "import torch\n"
WRAPS = [
    ("a()", "a()", "a()\n", "with torch.no_grad():\n    a()\n"),
    (
        "a()",
        "b()",
        "a()  # x\n\n# y\nb()\n",
        "with torch.no_grad():\n    a()  # x\n\n    # y\n    b()\n",
    ),
    ("y +=", "y +=", "if x: y += 1\n", "if x:\n    with torch.no_grad():\n        y += 1\n"),
    ("a()", "a()", "a(); b()\n", "with torch.no_grad():\n    a()\nb()\n"),
    ("b()", "b()", "a(); b(); c()\n", "a()\nwith torch.no_grad():\n    b()\nc()\n"),
    ("a(", "a(", "a(1,\n  2)\n", "with torch.no_grad():\n    a(1,\n      2)\n"),
    ("a", "a", 'a = """\n  text\n"""\n', 'with torch.no_grad():\n    a = """\n  text\n"""\n'),
    ("a", "a", "if x:\n\ta\n", "if x:\n\twith torch.no_grad():\n\t\ta\n"),
    ("a", "a", "a = 1 + \\\n  2\n", "with torch.no_grad():\n    a = 1 + \\\n      2\n"),
    ("def f", "def f", "@d\ndef f(): pass\n", "with torch.no_grad():\n    @d\n    def f(): pass\n"),
]


@pytest.mark.parametrize(("first", "last", "before", "after"), WRAPS)
def test_wrap(first: str, last: str, before: str, after: str) -> None:
    tree = tree_from(T + before)
    edits = wrap_in_with(tree, at(tree, first), at(tree, last), "torch.no_grad()")
    assert edited(tree, edits) == T + after


def test_wrap_keeps_line_endings_and_spelling() -> None:
    tree = tree_from("from torch import no_grad\r\nif x:\r\n  a\r\n")
    edits = wrap_in_with(tree, at(tree, "a"), at(tree, "a"), "with torch.no_grad():")
    assert edited(tree, edits) == (
        "from torch import no_grad\r\nif x:\r\n  with no_grad():\r\n    a\r\n"
    )


def test_wrap_refuses_an_elif_and_two_blocks() -> None:
    tree = tree_from("if x:\n    a\nelif y:\n    b\n")
    outer = tree.root.body[0]
    assert isinstance(outer, ast.If)
    assert wrap_in_with(tree, outer.orelse[0], outer.orelse[0], "torch.no_grad()") is None
    assert wrap_in_with(tree, at(tree, "a"), at(tree, "b"), "torch.no_grad()") is None


UNWRAPS = [
    (
        "with a():  # left over\n    # why\n    x = 1\n\n    y = 2\nz\n",
        "# why\nx = 1\n\ny = 2\nz\n",
    ),
    ("def f():\n    with a():\n        return x\n", "def f():\n    return x\n"),
    ("with a(): x = 1\n", "x = 1\n"),
    ("with a():\n    x\n\n    # end\n\n# y\ny\n", "x\n\n# end\n\n# y\ny\n"),
    ("with a(), b() as c:\n    x\n", "with b() as c:\n    x\n"),
    ("with a() as c:\n    x\n", None),
    ('with a():\n    x = """\n    t"""\n', 'x = """\n    t"""\n'),
    ("with (\n    a()\n):\n    x = f(\n  1)\n", "x = f(\n  1)\n"),
    ("async def f():\n    async with a():\n        x\n", "async def f():\n    x\n"),
    ("if c:\n\twith a():\n\t\tx\n\t\ty\n", "if c:\n\tx\n\ty\n"),
]


@pytest.mark.parametrize(("before", "after"), UNWRAPS)
def test_unwrap(before: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, unwrap_with(tree, first_with(tree.root))) == after


def test_unwrap_a_later_item() -> None:
    tree = tree_from("with a() as c, b():\n    x\n")
    assert edited(tree, unwrap_with(tree, first_with(tree.root), 1)) == "with a() as c:\n    x\n"


SWITCHES = [
    (
        "def f():\n    torch.set_grad_enabled(False)  # evaluation\n    for x in y:\n        g(x)\n    return 1\n",
        "def f():\n    with torch.no_grad():  # evaluation\n        for x in y:\n            g(x)\n        return 1\n",
    ),
    (
        "torch.set_grad_enabled(False)\na()\ntorch.set_grad_enabled(True)\nb()\n",
        "with torch.no_grad():\n    a()\nb()\n",
    ),
    ("torch.set_grad_enabled(mode=True)\na()\n", "with torch.enable_grad():\n    a()\n"),
    ("torch.set_grad_enabled(False)\n", None),
    ("torch.set_grad_enabled(mode)\na()\n", None),
    ("a()\n", None),
]


@pytest.mark.parametrize(("before", "after"), SWITCHES)
def test_grad_switch(before: str, after: str | None) -> None:
    tree = tree_from(T + before)
    body = tree.root.body[1]
    statement = body.body[0] if isinstance(body, ast.FunctionDef) else body
    result = edited(tree, grad_switch_to_block(tree, statement))
    assert result == (after and T + after)


def test_grad_switch_imported_by_name() -> None:
    tree = tree_from("from torch import set_grad_enabled\nset_grad_enabled(False)\na()\n")
    assert edited(tree, grad_switch_to_block(tree, tree.root.body[1])) == code("""
        from torch import set_grad_enabled
        import torch
        with torch.no_grad():
            a()
    """)


SWAPS = [
    (
        "with c():  # once\n    for x in xs:  # many\n        f(x)\n\n        g(x)\nh()\n",
        "for x in xs:  # many\n    with c():  # once\n        f(x)\n\n        g(x)\nh()\n",
    ),
    ("with c():\n    for x in xs: f(x)\n", "for x in xs:\n    with c(): f(x)\n"),
    (
        "with c():\n    while (\n        a\n    ):\n        f()\n",
        "while (\n        a\n    ):\n    with c():\n        f()\n",
    ),
    ("with c():\n    a()\n    for x in xs:\n        f(x)\n", None),
    ("with c():\n    for x in xs:\n        f(x)\n    else:\n        g()\n", None),
]


@pytest.mark.parametrize(("before", "after"), SWAPS)
def test_swap(before: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, swap_with_and_loop(tree, first_with(tree.root))) == after
