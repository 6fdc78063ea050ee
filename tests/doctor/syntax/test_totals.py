from __future__ import annotations

import ast

import pytest

from gradwright.doctor.syntax.totals import add_up_in_loop, backward_of_addend
from tests.doctor.syntax.sources import at, edited, tree_from

LOOPS = [
    (
        "for h in heads:\n    loss = h(x)\n    loss.backward()\n",
        "total = 0.0\nfor h in heads:\n    loss = h(x)\n    total = total + loss\n"
        "total.backward()\n",
    ),
    (
        "for h in heads:\n    h(x).sum().backward(retain_graph=True)\n    log(h)\nstep()\n",
        "total = 0.0\nfor h in heads:\n    total = total + h(x).sum()\n    log(h)\n"
        "total.backward()\nstep()\n",
    ),
    (
        "while c():\n    (a - b).backward()\n",
        "total = 0.0\nwhile c():\n    total = total + (a - b)\ntotal.backward()\n",
    ),
    (
        "total = 3\nfor h in heads:\n    h.backward()\n",
        "total = 3\ntotal_2 = 0.0\nfor h in heads:\n    total_2 = total_2 + h\n"
        "total_2.backward()\n",
    ),
    ("for h in heads:\n    h.backward()\n    opt.step()\n", None),
    ("for h in heads:\n    opt.zero_grad()\n    h.backward()\n", None),
    ("for h in heads:\n    h.backward()\n    log(w.grad)\n", None),
    ("for h in heads:\n    h.backward(g)\n", None),
    ("for h in heads:\n    if h:\n        h.backward()\n", None),
    ("for h in heads: h.backward()\n", None),
    ("for h in heads:\n    h.backward()\nelse:\n    pass\n", None),
]


@pytest.mark.parametrize(("before", "after"), LOOPS)
def test_add_up_in_loop(before: str, after: str | None) -> None:
    tree = tree_from(before)
    loop = next(node for node in ast.walk(tree.root) if isinstance(node, ast.For | ast.While))
    call = next(
        node
        for node in ast.walk(tree.root)
        if isinstance(node, ast.Expr) and ".backward(" in tree.source(node)
    )

    assert edited(tree, add_up_in_loop(tree, loop, call)) == after


ADDENDS = [
    ("t += loss\nt.backward()\n", "t += loss.detach()\nloss.backward()\n"),
    ("t = t + loss\nt.backward()\n", "t = t + loss.detach()\nloss.backward()\n"),
    ("t = loss + t\n(t / 2).backward()\n", "t = loss.detach() + t\nloss.backward()\n"),
    ("s.t += s.loss\ns.t.backward()\n", "s.t += s.loss.detach()\ns.loss.backward()\n"),
    ("t += f(x)\nt.backward()\n", None),
    ("t -= loss\nt.backward()\n", None),
    ("t = t * loss\nt.backward()\n", None),
    ("t = t + t\nt.backward()\n", None),
    ("t += loss\nu.backward()\n", None),
    ("t += loss\nt.backward(g)\n", None),
    ("def f():\n    t += loss\nt.backward()\n", None),
]


@pytest.mark.parametrize(("before", "after"), ADDENDS)
def test_backward_of_addend(before: str, after: str | None) -> None:
    tree = tree_from(before)
    first, last = tree.root.body[0], tree.root.body[-1]
    addition = first.body[0] if isinstance(first, ast.FunctionDef) else first

    assert edited(tree, backward_of_addend(tree, addition, last)) == after


def test_the_name_is_not_taken() -> None:
    tree = tree_from("def f(total):\n    for h in heads:\n        h.backward()\n")
    loop = at(tree, "for h")
    assert isinstance(loop, ast.For)

    changed = edited(tree, add_up_in_loop(tree, loop, loop.body[0]))

    assert changed is not None and "    total_2.backward()" in changed
