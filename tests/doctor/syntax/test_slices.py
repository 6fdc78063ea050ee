from __future__ import annotations

import ast

from gradwright.doctor.syntax import recompute_after, slice_of
from tests.doctor.syntax.sources import at, code, edited, tree_from

GAN = code("""
    for step in range(steps):
        real = curves()
        fake = g(noise())
        p_real, p_fake = d(real), d(fake)
        loss_g = torch.log(1 - p_fake).mean()  # generator
        loss_d = -(torch.log(p_real) + torch.log(1 - p_fake)).mean()
        opt_d.zero_grad()
        loss_d.backward(retain_graph=True)
        opt_d.step()
        loss_g.backward()
""")


def test_slice_and_recompute_after_the_step() -> None:
    tree = tree_from(GAN)
    statements = slice_of(tree, tree.root, "loss_g", 10, 4)
    assert [one.lineno for one in statements] == [4, 5]
    anchor = at(tree, "opt_d.step")
    assert edited(tree, recompute_after(tree, statements, anchor)) == code("""
        for step in range(steps):
            real = curves()
            fake = g(noise())
            p_real, p_fake = d(real), d(fake)
            loss_d = -(torch.log(p_real) + torch.log(1 - p_fake)).mean()
            opt_d.zero_grad()
            loss_d.backward(retain_graph=True)
            opt_d.step()
            p_fake = d(fake)
            loss_g = torch.log(1 - p_fake).mean()  # generator
            loss_g.backward()
    """)


def test_slice_reaches_back_to_the_predicate() -> None:
    tree = tree_from(GAN)

    def is_real(statement: ast.stmt) -> bool:
        return tree.source(statement).startswith("real")

    assert [one.lineno for one in slice_of(tree, tree.root, "loss_g", 10, is_real)] == [3, 4, 5]
    assert slice_of(tree, tree.root, "nothing", 10, 1) == []


def test_copies_what_is_read_before_and_moves_the_rest() -> None:
    tree = tree_from("p = d(x)\nl = f(\n  p,\n)\nprint(l)\nm = h(p)\nopt.step()\nm.backward()\n")
    anchor = at(tree, "opt.step")
    pm = [at(tree, "p = "), at(tree, "m = ")]
    assert edited(tree, recompute_after(tree, pm, anchor)) == (
        "p = d(x)\nl = f(\n  p,\n)\nprint(l)\nopt.step()\np = d(x)\nm = h(p)\nm.backward()\n"
    )
    pl = [at(tree, "p = "), at(tree, "l = ")]
    assert edited(tree, recompute_after(tree, pl, anchor)) == (
        "p = d(x)\nl = f(\n  p,\n)\nprint(l)\nm = h(p)\nopt.step()\n"
        "p = d(x)\nl = f(\n  p,\n)\nm.backward()\n"
    )


def test_refuses_changed_inputs_and_other_blocks() -> None:
    tree = tree_from("p = d(x)\nx = 2\nif c:\n    q = 1\nopt.step()\np.backward()\n")
    anchor = at(tree, "opt.step")
    assert recompute_after(tree, [at(tree, "p = ")], anchor) is None
    assert recompute_after(tree, [at(tree, "q = ")], anchor) is None
    assert recompute_after(tree, [at(tree, "p.backward")], anchor) is None
    tree = tree_from("a, b = b, a\nprint(a)\nopt.step()\n")
    assert recompute_after(tree, [tree.root.body[0]], at(tree, "opt.step")) is None


def test_an_element_that_is_read_later_stays() -> None:
    tree = tree_from("p, q = d(x), d(y)\nopt.step()\np.backward()\nprint(q)\n")
    edits = recompute_after(tree, [tree.root.body[0]], at(tree, "opt.step"))
    assert edited(tree, edits) is not None
    tree2 = tree_from("p, q = d(x), d(y)\nm = h(p)\nopt.step()\nm.backward()\nprint(q)\n")
    slice_ = slice_of(tree2, tree2.root, "m", 4, 1)
    assert edited(tree2, recompute_after(tree2, slice_, at(tree2, "opt.step"))) == (
        "p, q = d(x), d(y)\nopt.step()\np = d(x)\nm = h(p)\nm.backward()\nprint(q)\n"
    )
