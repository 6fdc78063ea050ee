# ruff: noqa: E501 (a row of a table stays on its line)
from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import assigned_names, assignments_to, binds_in, reads_in, reads_of
from tests.doctor.syntax.sources import at, tree_from


@pytest.mark.parametrize(
    ("text", "reads", "binds"),
    [
        ("self.a.b = c.d(e)", {"c.d", "e"}, {"self.a.b"}),
        ("x[i] = y", {"x", "i", "y"}, {"x"}),
        ("x += 1", {"x"}, {"x"}),
        ("x.add_(y)", {"x.add_", "y"}, {"x"}),
        ("f(x).g", {"f", "x"}, set()),
        ("y = [a + b for a in xs if a]", {"b", "xs"}, {"y"}),
        ("y = {a: b for a in a for b in a}", {"a"}, {"y"}),
        ("y = lambda a, *b: a + b + c", {"c"}, {"y"}),
        ("def f(a, b=c): a; b; d; e = 1; e", {"c", "d"}, {"f"}),
        ("def f(): global g; g = 1", set(), {"f", "g"}),
        ("class A(B): c = d; c", {"B", "d"}, {"A"}),
        ("for a, self.b in c: pass", {"c"}, {"a", "self.b"}),
        ("with a as b: pass", {"a"}, {"b"}),
        ("import a.b, c as d", set(), {"a", "d"}),
        ("(a := b)", {"b"}, {"a"}),
        ("del a", set(), {"a"}),
    ],
)
def test_reads_and_binds(text: str, reads: set[str], binds: set[str]) -> None:
    root = tree_from(text + "\n").root
    assert (reads_in(root), binds_in(root)) == (reads, binds)


def test_match_and_except_bind() -> None:
    root = tree_from(
        "match v:\n    case {'k': a, **rest}: pass\n    case [b, *c]: pass\n    case D() as e: pass\n"
        "try: pass\nexcept E as error: pass\n"
    ).root
    assert binds_in(root) == {"a", "rest", "b", "c", "e", "error"}


def test_assignments_and_reads_in_order() -> None:
    tree = tree_from("x = 1\nif c:\n    self.h, x = x.y, 2\nfor x in x: pass\nxs = 1\n")
    assert [one.lineno for one in assignments_to(tree.root, "x")] == [1, 3, 4]
    assert [one.lineno for one in assignments_to(tree.root, "self.h")] == [3]
    assert [one.lineno for one in reads_of(tree.root, "x")] == [3, 4]
    assert assigned_names(at(tree, "self.h")) == ["self.h", "x"]
    function = ast.parse("def f():\n    def g(x): x\n    def h(): x\n").body[0]
    assert [one.lineno for one in reads_of(function, "x")] == [3]
