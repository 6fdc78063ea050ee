from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import (
    Function,
    detach_after_store,
    detach_at_function_end,
    detach_reads,
    insert_at_function_end,
)
from tests.doctor.syntax.sources import at, edited, tree_from


def function(tree_root: ast.AST) -> Function:
    return next(
        node
        for node in ast.walk(tree_root)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


STORES = [
    ("self.h = f(x)\n", "tensor", "self.h = f(x).detach()\n"),
    ("self.h = a + b  # note\n", "tensor", "self.h = (a + b).detach()  # note\n"),
    (
        "y, self.h = f(x)  # note\n",
        "tensor",
        "y, self.h = f(x)  # note\nself.h = self.h.detach()\n",
    ),
    (
        "y, self.h = f(x)\n",
        "tuple",
        "y, self.h = f(x)\nself.h = tuple(t.detach() for t in self.h)\n",
    ),
    ("self.h = a, b\n", "tuple", "self.h = tuple(t.detach() for t in (a, b))\n"),
    ("self.h = f(x)\n", "list", "self.h = [t.detach() for t in f(x)]\n"),
    ("self.h = f(x)\n", "dict", "self.h = dict((k, t.detach()) for k, t in f(x).items())\n"),
    ("y = self.h = f(x)\n", "tensor", "y = self.h = f(x)\nself.h = self.h.detach()\n"),
    ("self.h += f(x)\n", "tensor", "self.h += f(x)\nself.h = self.h.detach()\n"),
    ("if c: y, self.h = f(x)\n", "tensor", "if c: y, self.h = f(x); self.h = self.h.detach()\n"),
    ("y, self.h = f(x); g()\n", "tensor", "y, self.h = f(x); self.h = self.h.detach(); g()\n"),
    ("self.h = f(x)\n", "nested", None),
    ("self.h = f(x)\nreturn_(self.h)\n", "tensor", None),
    (
        "self.h = f(x)\nself.h = None\nprint(self.h)\n",
        "tensor",
        "self.h = f(x).detach()\nself.h = None\nprint(self.h)\n",
    ),
    ("self.g = f(x)\n", "tensor", None),
]


@pytest.mark.parametrize(("before", "kind", "after"), STORES)
def test_detach_after_store(before: str, kind: str, after: str | None) -> None:
    tree = tree_from(before)
    statement = next(
        node for node in ast.walk(tree.root) if isinstance(node, ast.Assign | ast.AugAssign)
    )
    assert edited(tree, detach_after_store(tree, statement, "self.h", kind)) == after


def test_detach_reads() -> None:
    tree = tree_from("y, h = f(x, h)\nz = h.mean()\n")
    assert edited(tree, detach_reads(tree, at(tree, "y"), "h", "tensor")) == (
        "y, h = f(x, h.detach())\nz = h.mean()\n"
    )
    assert edited(tree, detach_reads(tree, at(tree, "y"), "h", "tuple")) == (
        "y, h = f(x, tuple(t.detach() for t in h))\nz = h.mean()\n"
    )
    assert detach_reads(tree, at(tree, "z"), "h", "tensor") is None
    tree = tree_from("h += h\n")
    assert detach_reads(tree, at(tree, "h"), "h", "tensor") is None


ENDS = [
    ("def f():\n    a()\n", "def f():\n    a()\n    self.h = 1\n"),
    (
        "def f():\n    a()\n    return b  # note\n",
        "def f():\n    a()\n    self.h = 1\n    return b  # note\n",
    ),
    (
        "def f():\n    return self.h + 1\n",
        "def f():\n    result = self.h + 1\n    self.h = 1\n    return result\n",
    ),
    (
        "def f(result):\n    return g(result)\n",
        "def f(result):\n    result_2 = g(result)\n    self.h = 1\n    return result_2\n",
    ),
    ("def f(): return b\n", "def f(): self.h = 1; return b\n"),
    ("def f(): b\n", "def f(): b; self.h = 1\n"),
    ("def f():\n    if c:\n        return\n    a()\n", None),
    (
        "def f():\n    def g():\n        return 1\n",
        "def f():\n    def g():\n        return 1\n    self.h = 1\n",
    ),
    ("def f():\n    raise E\n", None),
    (
        "def f():\n\tif c:\n\t\ta()  # note\n\n\nb()\n",
        "def f():\n\tif c:\n\t\ta()  # note\n\tself.h = 1\n\n\nb()\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), ENDS)
def test_insert_at_function_end(before: str, after: str | None) -> None:
    tree = tree_from(before)
    edits = insert_at_function_end(tree, function(tree.root), ["self.h = 1"])
    assert edited(tree, edits) == after


def test_detach_at_function_end() -> None:
    tree = tree_from("def f():\n    self.h = g(self.h)\n    return self.out(self.h)")
    edits = detach_at_function_end(tree, function(tree.root), "self.h", "tensor")
    assert edited(tree, edits) == (
        "def f():\n    self.h = g(self.h)\n    result = self.out(self.h)\n"
        "    self.h = self.h.detach()\n    return result"
    )
