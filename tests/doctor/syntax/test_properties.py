from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax.properties import make_property
from tests.doctor.syntax.sources import at, edited, tree_from


def in_init(lines: str, arguments: str = "self", name: str = "__init__") -> str:
    return f"class A:\n    def {name}({arguments}):\n        x = 1\n        {lines}\n"


def as_property(value: str) -> str:
    return f"\n    @property\n    def base(self):\n        return {value}\n"


PROPERTIES = [
    (
        in_init("self.base = g(self.loc)"),
        in_init("").replace("        \n", "") + as_property("g(self.loc)"),
    ),
    (
        in_init("self.base = embed(ids)", "self, ids"),
        in_init("self.ids = ids", "self, ids") + as_property("embed(self.ids)"),
    ),
    (
        in_init("self.base = g(c.n, y, c)", "self, c, y"),
        in_init("self.c = c\n        self.y = y", "self, c, y")
        + as_property("g(self.c.n, self.y, self.c)"),
    ),
    (in_init("self.base = g(x)"), None),
    (in_init("self.base = g(ids)", "self, *ids"), None),
    (in_init("self.base = g(ids)", "self, ids", "build"), None),
    (in_init("self.base = g(ids); ids = 2", "self, ids"), None),
    (in_init("self.base = g(ids); self.ids = None", "self, ids"), None),
    (in_init("self.base = [f(ids) for f in fs]", "self, ids"), None),
    (in_init("self.base = g(); self.base = 2"), None),
    (in_init("self.base = self.other = g()"), None),
    (in_init("self.base, self.other = g()"), None),
    (in_init("other.base = g()"), None),
    (in_init("self.base += g()"), None),
]


@pytest.mark.parametrize(("before", "after"), PROPERTIES)
def test_make_property(before: str, after: str | None) -> None:
    tree = tree_from(before)
    kind = tree.root.body[0]
    assert isinstance(kind, ast.ClassDef)
    start = next(one for one in ("self.base", "other.base") if one in before)

    assert edited(tree, make_property(tree, kind, at(tree, start))) == after


def test_a_method_named_like_the_argument_is_not_hidden() -> None:
    tree = tree_from(in_init("self.base = g(ids)", "self, ids") + "    def ids(self): pass\n")
    kind = tree.root.body[0]
    assert isinstance(kind, ast.ClassDef)

    assert make_property(tree, kind, at(tree, "self.base")) is None
