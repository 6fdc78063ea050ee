from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import guard_cache_test, reset_methods
from tests.doctor.syntax.sources import code, edited, tree_from


def in_class(test: str) -> str:
    return f"class A:\n    def f(self, key):\n        if {test}:\n            return self.c\n"


TESTS = [
    ("self.c is not None", "self.c is not None and not self.c.requires_grad"),
    (
        "self.on and self.c is not None",
        "self.on and self.c is not None and not self.c.requires_grad",
    ),
    (
        "self.c is not None and self.c.shape[0] >= n",
        "self.c is not None and not self.c.requires_grad and self.c.shape[0] >= n",
    ),
    ("x or self.c is not None", "x or self.c is not None and not self.c.requires_grad"),
    ("self.c is None", "self.c is None or self.c.requires_grad"),
    ("x and self.c is None", "x and (self.c is None or self.c.requires_grad)"),
    ("self.c is None or x", "self.c is None or self.c.requires_grad or x"),
    ("hasattr(self, 'c')", "hasattr(self, 'c') and not self.c.requires_grad"),
    ("not hasattr(self, 'c')", "not hasattr(self, 'c') or self.c.requires_grad"),
    ("key in self.c", "key in self.c and not self.c[key].requires_grad"),
    ("(key, 1) not in self.c", "(key, 1) not in self.c or self.c[(key, 1)].requires_grad"),
    ("not (x and self.c is not None)", None),
    ("key() in self.c", None),
    ("self.d is None", None),
    ("hasattr(self, key)", None),
]


@pytest.mark.parametrize(("before", "after"), TESTS)
def test_guard_cache_test(before: str, after: str | None) -> None:
    tree = tree_from(in_class(before))
    kind = tree.root.body[0]
    assert isinstance(kind, ast.ClassDef)
    result = edited(tree, guard_cache_test(tree, kind, "c"))
    assert result == (None if after is None else in_class(after))


def test_reset_methods() -> None:
    tree = tree_from(
        code("""
        class A:
            def __init__(self):
                self.h = None
            def reset(self):
                self.h = None
            def clear(self, hard=False):
                if hard:
                    self.h = torch.zeros(3)
            def finish(self):
                self.h.clear()
            def drop(self):
                del self.h[:]
            def to(self, device):
                self.h = None
            def keep(self):
                self.h = self.h.detach()
            @property
            def none(self):
                self.h = []
    """)
    )
    kind = tree.root.body[0]
    assert isinstance(kind, ast.ClassDef)
    assert reset_methods(kind, "h") == ["reset", "clear", "finish", "drop"]
    assert reset_methods(kind, "g") == []
