import ast

import pytest

from gradwright.doctor.syntax.undetach import use_history
from tests.doctor.syntax.sources import edited, tree_from

USES = [
    (
        "def f(self, x):\n    v = x.detach()\n    self.m = v.mean()\n    return v - self.m\n",
        "def f(self, x):\n    v = x.detach()\n    self.m = v.mean()\n    return x - self.m\n",
    ),
    (
        "def f(s, x):\n    v = x.h.detach()\n    s.m.add_(v)\n    y = -v\n    return y * v\n",
        "def f(s, x):\n    v = x.h.detach()\n    s.m.add_(v)\n    y = -x.h\n    return y * x.h\n",
    ),
    # all readers keep it, or none does
    ("def f(self, x):\n    v = x.detach()\n    self.m = v.mean()\n", None),
    ("def f(self, x):\n    v = x.detach()\n    return v\n", None),
    # `x` or `v` has another meaning there
    ("def f(s, x):\n    v = x.detach()\n    s.m = v\n    x = 1\n    return v\n", None),
    ("def f(s, x):\n    v = x.detach()\n    s.m = v\n    v = s.m\n    return v\n", None),
    # not a name of its own
    ("def f(s, x):\n    v = g(x).detach()\n    s.m = v\n    return v\n", None),
    ("def f(s, x):\n    v = 2 * x.detach()\n    s.m = v\n    return v\n", None),
]


@pytest.mark.parametrize(("before", "after"), USES)
def test_readers_get_the_history(before: str, after: str | None) -> None:
    tree = tree_from(before)
    calls = [node for node in ast.walk(tree.root) if isinstance(node, ast.Call)]
    detach = next(call for call in calls if ast.unparse(call.func).endswith(".detach"))

    assert edited(tree, use_history(tree, detach)) == after
