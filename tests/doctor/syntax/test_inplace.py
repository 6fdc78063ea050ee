from __future__ import annotations

import ast

import pytest
import torch

from gradwright.doctor.syntax import out_of_place
from gradwright.doctor.syntax.inplace_calls import WITHOUT_TWIN
from tests.doctor.syntax.sources import at, code, edited, expr, tree_from

PLAIN = [
    ("x += e\n", "x = x + e\n"),
    ("self.x += e\n", "self.x = self.x + e\n"),
    ("x *= a + b\n", "x = x * (a + b)\n"),
    ("x *= (a + b)\n", "x = x * (a + b)\n"),
    ("x *= (a) + (b)\n", "x = x * ((a) + (b))\n"),
    ("x -= a - b\n", "x = x - (a - b)\n"),
    ("x += a * b\n", "x = x + a * b\n"),
    ("x **= -y\n", "x = x ** (-y)\n"),
    ("x **= y ** z\n", "x = x ** y ** z\n"),
    ("x //= y\n", "x = x // y\n"),
    ("x @= y @ z\n", "x = x @ (y @ z)\n"),
    ("x |= y == z\n", "x = x | (y == z)\n"),
    ("x >>= 1  # halve\n", "x = x >> 1  # halve\n"),
    ("x += y if c else z\n", "x = x + (y if c else z)\n"),
    ("x += f(\n    a,  # one\n    b,\n)\n", "x = x + f(\n    a,  # one\n    b,\n)\n"),
    ("x += (\n    a  # one\n    + b\n)\n", "x = x + (\n    a  # one\n    + b\n)\n"),
    ("x = 1; x += e; y = 2\n", "x = 1; x = x + e; y = 2\n"),
    ("if c: x += e\n", "if c: x = x + e\n"),
    ("if c:\n\tx += e\n", "if c:\n\tx = x + e\n"),
    ("x += e\r\ny = 1\r\n", "x = x + e\r\ny = 1\r\n"),
    ("é = 'ß'; x += e\n", "é = 'ß'; x = x + e\n"),
    ("x += e", "x = x + e"),
    ("x +=e\n", "x = x + e\n"),
    ("x[i] += e\n", "x = x.clone()\nx[i] += e\n"),
    ("if c: x[i] += e\n", "if c: x = x.clone(); x[i] += e\n"),
    ("x[a][b, :] += e\n", "x = x.clone()\nx[a][b, :] += e\n"),
    ("f().x += e\n", None),
    ("f()[i] += e\n", None),
]


@pytest.mark.parametrize(("before", "after"), PLAIN, ids=[one[0] for one in PLAIN])
def test_augmented_assignment(before: str, after: str | None) -> None:
    tree = tree_from(before)
    statement = next(node for node in ast.walk(tree.root) if isinstance(node, ast.AugAssign))
    assert edited(tree, out_of_place(tree, statement)) == after


def test_elements_of_a_sequence_are_replaced() -> None:
    tree = tree_from("xs[i] += e\n")
    assert edited(tree, out_of_place(tree, tree.root.body[0], sequence=True)) == (
        "xs[i] = xs[i] + e\n"
    )
    tree = tree_from("xs[next(i)] += e\n")
    assert out_of_place(tree, tree.root.body[0], sequence=True) is None


METHODS = [
    ("x.relu_()\n", "x = x.relu()\n"),
    ("x.mul_(e)  # scale\n", "x = x.mul(e)  # scale\n"),
    ("self.x[0].mul_(e)\n", "self.x[0] = self.x[0].mul(e)\n"),
    ("x.mul_(a).add_(b)\n", "x = x.mul(a).add(b)\n"),
    ("y = x.add_(e)\n", "y = x.add(e)\n"),
    ("y = f(x).add_(e)\n", "y = f(x).add(e)\n"),
    ("f(x).add_(e)\n", None),
    ("x.zero_()\n", "import torch\nx = torch.zeros_like(x)\n"),
    ("import torch as th\nx.fill_(3)\n", "import torch as th\nx = th.full_like(x, 3)\n"),
    ("x.copy_(y)\n", None),
    ("y = nn.ReLU(inplace=True)\n", "y = nn.ReLU(inplace=False)\n"),
    ("y = nn.ReLU(True)\n", "y = nn.ReLU(False)\n"),
    ("y = F.relu(x, inplace=True)\n", "y = F.relu(x, inplace=False)\n"),
    ("y = F.relu(x, inplace=False)\n", None),
    ("torch.add(x, y, out=x)\n", "x = torch.add(x, y)\n"),
    ("y = torch.add(x, y, out=x)\n", "y = x = torch.add(x, y)\n"),
    ("torch.max(x, 0, out=(a, b))\n", "a, b = torch.max(x, 0)\n"),
    ("torch.mul(\n    x,\n    y,\n    out=x,\n)\n", "x = torch.mul(\n    x,\n    y,\n)\n"),
    ("x[m] = 0.0\n", "x = x.clone()\nx[m] = 0.0\n"),
    ("x.y = 3\n", None),
]


@pytest.mark.parametrize(("before", "after"), METHODS, ids=[one[0] for one in METHODS])
def test_methods_stores_and_calls(before: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, out_of_place(tree, tree.root.body[-1])) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("w[w < self.cut] = 0.0\n", "w = w.masked_fill(w < self.cut, 0.0)\n"),
        ("w[m] = -float('inf')\n", "w = w.masked_fill(m, -float('inf'))\n"),
        ("w[m] = v\n", "w = w.clone()\nw[m] = v\n"),
        ("w[:, m] = 0\n", "w = w.clone()\nw[:, m] = 0\n"),
    ],
)
def test_boolean_mask(before: str, after: str) -> None:
    tree = tree_from(before)
    assert edited(tree, out_of_place(tree, tree.root.body[0], boolean_mask=True)) == after


def test_call_inside_other_code() -> None:
    tree = tree_from(
        code("""
        def f(x):
            return nn.Sequential(a, nn.ReLU(inplace=True), b)
    """)
    )
    found = expr(tree, "nn.ReLU(inplace=True)")
    assert isinstance(found, ast.Call)
    assert edited(tree, out_of_place(tree, found)) == code("""
        def f(x):
            return nn.Sequential(a, nn.ReLU(inplace=False), b)
    """)
    tree = tree_from("def f(x):\n    return x.mul_(2)\n")
    after = edited(tree, out_of_place(tree, at(tree, "return")))
    assert after == "def f(x):\n    return x.mul(2)\n"


def test_every_in_place_method_of_torch_has_a_twin_or_is_refused() -> None:
    names = {name for name in dir(torch.Tensor) if name.endswith("_") and name[0] != "_"}
    without = {name for name in names if not hasattr(torch.Tensor, name[:-1])}
    assert without <= WITHOUT_TWIN
