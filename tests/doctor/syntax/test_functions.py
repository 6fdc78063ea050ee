from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import add_return, dead_stores, delay_method
from tests.doctor.syntax.sources import at, code, edited, tree_from


def body_function(root: ast.Module) -> ast.FunctionDef:
    function = root.body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


RETURNS = [
    (
        "def f():\n    a = 1\n    b = 2  # note\n\nx\n",
        "def f():\n    a = 1\n    b = 2  # note\n    return a, b\n\nx\n",
    ),
    ("def f(): a = b = 1\n", "def f(): a = b = 1; return a, b\n"),
    ("def f():\n\twith c:\n\t\ta = b = 1", "def f():\n\twith c:\n\t\ta = b = 1\n\treturn a, b"),
    ("def f():\n    a = 1\n    return a\n", None),
    ("def f():\n    a = 1\n    return\n", None),
]


@pytest.mark.parametrize(("before", "after"), RETURNS)
def test_add_return(before: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, add_return(tree, body_function(tree.root), ["a", "b"])) == after


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("(x,) = ctx.saved\ngap = x + g\nw = f(gap)\nw = w / w.norm()\nv = gap * g", ["w", "v"]),
        ("a = 1\nfor i in r:\n    b = a\n    a = 2", ["b"]),
        ("t = 0\nfor i in r:\n    t = t + i", ["t"]),
        ("t = 0\nt += 1", ["t"]),
        ("a = 1\ndef g():\n    return a", []),
        ("global a\na = 1", []),
        ("b, a = 1, 2", ["b", "a"]),
        ("a = 1\nprint([a for _ in r])", []),
        ("a = 1\nreturn a.b", []),
        ("self.a = 1", []),
    ],
)
def test_dead_stores(body: str, names: list[str]) -> None:
    indented = "".join(f"    {line}\n" for line in body.split("\n"))
    tree = tree_from(f"def f(ctx, g):\n{indented}")
    assert dead_stores(tree, body_function(tree.root)) == names


SCALE = """
class Clip(nn.Module):
    def __init__(self):
        self.scale = nn.Parameter(torch.ones([]) * 2).exp()  # temperature

    def forward(self, x):
        if self.other.scale:
            return {use} * x
"""


@pytest.mark.parametrize(
    ("use", "after"),
    [
        ("self.scale", "self.scale.exp()"),
        ("-self.scale", "-self.scale.exp()"),
        ("self.scale.mean()", "self.scale.exp().mean()"),
        ("self.scale.data", None),
        ("self.scales", None),
    ],
)
def test_delay_method(use: str, after: str | None) -> None:
    tree = tree_from(code(SCALE.format(use=use)))
    kind = tree.root.body[0]
    assert isinstance(kind, ast.ClassDef)
    result = edited(tree, delay_method(tree, kind, "scale", at(tree, "self.scale =")))
    if after is None:
        assert result is None
    else:
        assert result == code(SCALE.format(use=after)).replace(" * 2).exp()", " * 2)")


def test_delay_refuses_arguments_and_second_stores() -> None:
    for text in ("f(x).to(y)", "f(x).exp(); self.scale = 1", "f(x)"):
        tree = tree_from(f"class A:\n  def f(self):\n    self.scale = {text}\n    self.scale\n")
        kind = tree.root.body[0]
        assert isinstance(kind, ast.ClassDef)
        assert delay_method(tree, kind, "scale", at(tree, "self.scale")) is None
