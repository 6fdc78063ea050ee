from __future__ import annotations

from gradwright.doctor.syntax.reorder import move_after, move_out_of_loop, step_after_all
from gradwright.doctor.syntax.where import loop_at
from tests.doctor.syntax.sources import at, code, edited, tree_from


def test_move_after_takes_the_whole_block_with_its_comment() -> None:
    tree = tree_from("if preview:  # now and then\n    show(model)\nloss.backward()\nstep()\n")
    moved = move_after(tree, at(tree, "if preview"), at(tree, "loss.backward"))
    assert edited(tree, moved) == (
        "loss.backward()\nif preview:  # now and then\n    show(model)\nstep()\n"
    )


def test_move_after_refuses_what_is_read_on_the_way() -> None:
    tree = tree_from("scale = f()\nloss = scale * x\nloss.backward()\n")
    assert move_after(tree, at(tree, "scale ="), at(tree, "loss.backward")) is None


def test_move_after_refuses_another_block() -> None:
    tree = tree_from("a()\nif b:\n    c()\n")
    assert move_after(tree, at(tree, "a()"), at(tree, "c()")) is None


def test_move_out_of_loop_clears_before_and_steps_behind() -> None:
    tree = tree_from(
        code("""
        for loss in losses:
            opt.zero_grad()
            loss.backward(retain_graph=True)
            opt.step()
    """)
    )
    loop = loop_at(tree, 1)
    assert loop is not None
    moved = move_out_of_loop(tree, loop, [at(tree, "opt.zero")], [at(tree, "opt.step")])
    assert edited(tree, moved) == code("""
        opt.zero_grad()
        for loss in losses:
            loss.backward(retain_graph=True)
        opt.step()
    """)


def test_step_after_all_keeps_the_first_gradients() -> None:
    tree = tree_from("a.backward()\nfast.step()\nslow.zero_grad()\nb.backward()\nslow.step()\n")
    first, last = at(tree, "a.backward"), at(tree, "b.backward")
    moved = step_after_all(tree, first, at(tree, "fast.step"), last)
    assert edited(tree, moved) == (
        "slow.zero_grad()\na.backward()\nb.backward()\nfast.step()\nslow.step()\n"
    )
