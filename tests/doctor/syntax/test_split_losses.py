from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax.split_losses import sum_losses_first
from tests.doctor.syntax.sources import edited, tree_from

LOOPS = [
    (
        "for loss in f(x):\n    loss.backward()\n    log(loss)\n",
        "losses = list(f(x))\nsum(losses).backward()\nfor loss in losses:\n    log(loss)\n",
    ),
    (
        "def g():\n    for l in a, b:\n        log(l)\n        l.backward(retain_graph=True)\n",
        "def g():\n    losses = list((a, b))\n    sum(losses).backward()\n"
        "    for l in losses:\n        log(l)\n",
    ),
    (
        "for loss in losses:\n    loss.backward()\n    log(loss)\n",
        "losses_2 = list(losses)\nsum(losses_2).backward()\nfor loss in losses_2:\n    log(loss)\n",
    ),
    ("for loss in f(x):\n    loss.backward()\n", None),
    ("for loss in f(x):\n    loss.backward()\n    opt.step()\n", None),
    ("for loss in f(x):\n    loss.backward()\n    log(w.grad)\n", None),
    ("for k, loss in f(x):\n    loss.backward()\n    log(k)\n", None),
    ("for loss in f(x):\n    (2 * loss).backward()\n    log(loss)\n", None),
    ("for loss in f(x):\n    loss.backward(g)\n    log(loss)\n", None),
]


@pytest.mark.parametrize(("before", "after"), LOOPS)
def test_sum_losses_first(before: str, after: str | None) -> None:
    tree = tree_from(before)
    loop = next(node for node in ast.walk(tree.root) if isinstance(node, ast.For))
    call = next(node for node in loop.body if ".backward(" in tree.source(node))

    assert edited(tree, sum_losses_first(tree, loop, call)) == after
