from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax import join_backwards, sum_losses
from tests.doctor.syntax.sources import edited, tree_from

SUMS = [
    ("for l in losses:\n    l.backward()\n", "sum(losses).backward()\n"),
    ("for l in losses: l.backward(retain_graph=True)  # all\n", "sum(losses).backward()  # all\n"),
    ("for l in losses.values():\n    l.backward()\n", "sum(losses.values()).backward()\n"),
    ("for k, l in losses.items():\n    l.backward()\n", "sum(losses.values()).backward()\n"),
    ("for i, l in enumerate(losses):\n    l.backward()\n", "sum(losses).backward()\n"),
    ("for l in a, b:\n    l.backward()\n", "sum((a, b)).backward()\n"),
    ("for l in a if c else b:\n    l.backward()\n", "sum(a if c else b).backward()\n"),
    ("for l in losses:\n    (w * l).backward()\n", "sum((w * l) for l in losses).backward()\n"),
    (
        "for w, l in zip(ws, losses):\n    (w * l).backward()\n",
        "sum((w * l) for w, l in zip(ws, losses)).backward()\n",
    ),
    (
        "for k, l in losses.items():\n    (w[k] * l).backward()\n",
        "sum((w[k] * l) for k, l in losses.items()).backward()\n",
    ),
    ("for l in losses:\n    l.backward(g)\n", None),
    ("for l in losses:\n    l.backward()\n    opt.step()\n", None),
    ("for l in losses:\n    m.backward()\n", None),
    ("for l in losses:\n    l.backward()\nprint(l)\n", None),
    ("for l in losses:\n    l.backward()\nelse:\n    x\n", None),
    ("for l in losses:  # each\n    l.backward()\n", None),
    ("async def f():\n    async for l in losses:\n        l.backward()\n", None),
    ("if c:\n\tfor l in losses:\n\t\tl.backward()\n", "if c:\n\tsum(losses).backward()\n"),
]


@pytest.mark.parametrize(("before", "after"), SUMS)
def test_sum_losses(before: str, after: str | None) -> None:
    tree = tree_from(before)
    loop = next(node for node in ast.walk(tree.root) if isinstance(node, ast.For | ast.AsyncFor))
    assert edited(tree, sum_losses(tree, loop)) == after


JOINS = [
    ("a.backward(retain_graph=True)\nb.backward()\n", "(a + b).backward()\n"),
    (
        "a.backward(retain_graph=True)  # one\nx = 1\nb.backward()  # two\n",
        "x = 1\n(a + b).backward()  # two\n",
    ),
    ("a.backward(); b.backward()\n", "(a + b).backward()\n"),
    ("if c: a.backward(); b.backward()\n", "if c: (a + b).backward()\n"),
    ("(a - b).backward()\n(c - d).backward()\n", "((a - b) + (c - d)).backward()\n"),
    ("s.scale(a).backward()\ns.scale(b).backward()\n", "(s.scale(a) + s.scale(b)).backward()\n"),
    (
        "a.backward()\nb.backward()\nc.backward(retain_graph=True)\n",
        "(a + b + c).backward(retain_graph=True)\n",
    ),
    ("a.backward()\nopt.step()\nb.backward()\n", None),
    ("a.backward()\nopt.zero_grad()\nb.backward()\n", None),
    ("a.backward()\nprint(w.grad)\nb.backward()\n", None),
    ("a.backward()\na = f(x)\na.backward()\n", None),
    ("a.backward(g)\nb.backward()\n", None),
]


@pytest.mark.parametrize(("before", "after"), JOINS)
def test_join_backwards(before: str, after: str | None) -> None:
    tree = tree_from(before)
    statements = [
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.Expr) and ".backward(" in tree.source(node)
    ]
    assert edited(tree, join_backwards(tree, statements)) == after


def test_join_refuses_different_blocks_and_single_statements() -> None:
    tree = tree_from("if c:\n    a.backward()\nb.backward()\n")
    outer = tree.root.body[0]
    assert isinstance(outer, ast.If)
    assert join_backwards(tree, [outer.body[0], tree.root.body[1]]) is None
    assert join_backwards(tree, [tree.root.body[1]]) is None
