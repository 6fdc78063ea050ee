"""A rewrite of `a; b` means what it means on lines of their own, or there is none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import pairwise

import pytest

from gradwright.diagnostic.model import Edit
from gradwright.doctor.syntax import (
    SourceTree,
    add_return,
    class_at,
    combine,
    delete_statement,
    detach_after_store,
    detach_at_function_end,
    function_at,
    grad_switch_to_block,
    inline_into_use,
    insert_after,
    insert_at_function_end,
    insert_before,
    join_backwards,
    loop_at,
    move_into_loop,
    out_of_place,
    recompute_after,
    replace_statement,
    slice_of,
    statement_at,
    sum_losses,
    unwrap_with,
    with_statements_around,
    wrap_in_with,
    wrap_value,
)
from gradwright.doctor.syntax.guards import guard
from gradwright.doctor.syntax.moves import move_into_body
from gradwright.doctor.syntax.narrowed import yields_outside
from gradwright.doctor.syntax.properties import make_property
from gradwright.doctor.syntax.reorder import move_after, move_out_of_loop, step_after_all
from gradwright.doctor.syntax.split_losses import sum_losses_first
from gradwright.doctor.syntax.totals import add_up_in_loop, backward_of_addend
from tests.doctor.syntax.sources import at, code, edited, expr, tree_from

Rewrite = Callable[[SourceTree], tuple[Edit, ...] | None]

TRAINING = code("""
    import torch
    def train(model, optimizer, data):
        total = 0.0
        bank = model.embed(data)
        scale = 2.0
        for x, y in data:
            out = model(bank, x)
            first = (out - y).pow(2).sum()
            second = out.sum()
            optimizer.zero_grad()
            first.backward(retain_graph=True)
            optimizer.step()
            second.backward()
            total += second
            state = out
            note(out)
        print(total)
        return total
""")
LOSSES = code("""
    def train(model, data):
        total = 0.0
        for x in data:
            first = model(x)
            log(first)
            second = other(x)
            first.backward(retain_graph=True)
            log(second)
            second.backward()
            third = last(x)
            total += third
            log(total)
            total.backward()
            log(third)
            last(x)
            first.backward(inputs)
            optimizer.zero_grad()
            if x:
                log(4)
            optimizer.step()
            log(5)
            second.backward(inputs)
""")
CLASS = code("""
    class Net(Module):
        def __init__(self, size, deep, wide):
            self.size = size
            self.base = build(deep, wide)
            self.last = None
        def forward(self, x):
            torch.set_grad_enabled(False)
            h = self.base(x)
            k = self.last(x)
            torch.set_grad_enabled(True)
            return h + k
    class Other(Module):
        def batches(self):
            with torch.no_grad():
                a = self.load()
                b = self.more(a)
                yield b
                self.done()
        def losses(self, terms):
            for term in terms:
                term.backward()
                log(term)
            for term in self.parts:
                log(1)
                self.f(term).backward()
            for term in self.rest:
                term.backward()
""")


def loop(tree: SourceTree, start: str = "for x, y") -> ast.For:
    found = at(tree, start)
    assert isinstance(found, ast.For)
    return found


def method(tree: SourceTree, start: str) -> ast.FunctionDef:
    found = at(tree, start)
    assert isinstance(found, ast.FunctionDef)
    return found


def the_class(tree: SourceTree, start: str) -> ast.ClassDef:
    found = at(tree, start)
    assert isinstance(found, ast.ClassDef)
    return found


def the_with(tree: SourceTree) -> ast.With:
    found = at(tree, "with ")
    assert isinstance(found, ast.With)
    return found


def recomputed(tree: SourceTree) -> tuple[Edit, ...] | None:
    wanted = [at(tree, "out = "), at(tree, "second = ")]
    return recompute_after(tree, wanted, at(tree, "optimizer.step"))


IN_TRAINING: dict[str, Rewrite] = {
    "insert before": lambda t: insert_before(t, at(t, "second ="), ["n()"]),
    "insert block before": lambda t: insert_before(t, at(t, "second ="), ["if n:", "    m()"]),
    "insert after": lambda t: insert_after(t, at(t, "second ="), ["n()"]),
    "insert block after": lambda t: insert_after(t, at(t, "second ="), ["if n:", "    m()"]),
    "delete": lambda t: delete_statement(t, at(t, "scale =")),
    "replace": lambda t: replace_statement(t, at(t, "second ="), "second = 0"),
    "wrap value": lambda t: wrap_value(t, at(t, "second ="), "{}.detach()"),
    "wrap in with": lambda t: wrap_in_with(
        t, at(t, "first ="), at(t, "second ="), "torch.no_grad()"
    ),
    "wrap one in with": lambda t: wrap_in_with(
        t, at(t, "scale"), at(t, "scale"), "torch.no_grad()"
    ),
    "guard": lambda t: guard(t, at(t, "first ="), at(t, "second ="), "x is not None"),
    "move into loop": lambda t: move_into_loop(t, at(t, "bank ="), loop(t)),
    "move into body": lambda t: move_into_body(t, [at(t, "bank =")], loop(t)),
    "inline": lambda t: inline_into_use(t, at(t, "bank ="), expr(t, "bank", 1)),
    "detach store": lambda t: detach_after_store(t, at(t, "state ="), "state", "tensor"),
    "detach at end": lambda t: detach_at_function_end(t, method(t, "def train"), "total", "tensor"),
    "insert at end": lambda t: insert_at_function_end(t, method(t, "def train"), ["n()"]),
    "step after all": lambda t: step_after_all(
        t, at(t, "first.back"), at(t, "optimizer.step"), at(t, "second.back")
    ),
    "move after": lambda t: move_after(t, at(t, "optimizer.step"), at(t, "second.back")),
    "out of loop": lambda t: move_out_of_loop(
        t, loop(t), [at(t, "optimizer.zero")], [at(t, "optimizer.step")]
    ),
    "recompute": recomputed,
    "out of place": lambda t: out_of_place(t, at(t, "total +=")),
}
IN_LOSSES: dict[str, Rewrite] = {
    "join backwards": lambda t: join_backwards(t, [at(t, "first.back"), at(t, "second.back")]),
    "addend": lambda t: backward_of_addend(t, at(t, "total +="), at(t, "total.back")),
    "step and zero after all": lambda t: step_after_all(
        t, at(t, "first.backward(i"), at(t, "optimizer.step"), at(t, "second.backward(i")
    ),
    "delete two": lambda t: combine(
        t, delete_statement(t, at(t, "log(first)")), delete_statement(t, at(t, "log(second)"))
    ),
}
IN_CLASS: dict[str, Rewrite] = {
    "property": lambda t: make_property(t, the_class(t, "class Net"), at(t, "self.base =")),
    "switch": lambda t: grad_switch_to_block(t, at(t, "torch.set_grad_enabled(False)")),
    "unwrap with": lambda t: unwrap_with(t, the_with(t)),
    "yield": lambda t: yields_outside(t, the_with(t)),
    "sum first": lambda t: sum_losses_first(
        t, loop(t, "for term in terms"), at(t, "term.backward")
    ),
    "sum": lambda t: sum_losses(t, loop(t, "for term in self.rest")),
    "add up": lambda t: add_up_in_loop(t, loop(t, "for term in self.parts"), at(t, "self.f(term)")),
    "return": lambda t: add_return(t, method(t, "def losses"), ["terms"]),
    "delete first": lambda t: delete_statement(t, at(t, "self.size =")),
    "delete last": lambda t: delete_statement(t, at(t, "self.last =")),
}
CASES = [(TRAINING, name, rewrite) for name, rewrite in IN_TRAINING.items()]
CASES += [(LOSSES, name, rewrite) for name, rewrite in IN_LOSSES.items()]
CASES += [(CLASS, name, rewrite) for name, rewrite in IN_CLASS.items()]


def joined(text: str, wanted: Callable[[int], bool]) -> str:
    """The text with simple statements of a block joined by semicolons, at the wanted lines."""
    tree = tree_from(text)
    lines = text.splitlines()
    for node in ast.walk(tree.root):
        body = getattr(node, "body", None)
        for first, second in pairwise(body) if isinstance(body, list) else ():
            simple = not hasattr(first, "body") and not hasattr(second, "body")
            if simple and wanted(second.lineno):
                lines[second.lineno - 1] = "; " + lines[second.lineno - 1].strip()
    return "\n".join(lines).replace("\n; ", "; ") + "\n"


LAYOUTS: dict[str, Callable[[int], bool]] = {
    "all": lambda _: True,
    "even": lambda number: number % 2 == 0,
    "odd": lambda number: number % 2 == 1,
    "threes": lambda number: number % 3 > 0,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("text", "rewrite"), [(t, r) for t, _, r in CASES], ids=[n for _, n, _ in CASES]
)
def test_same_meaning_or_no_rewrite(text: str, rewrite: Rewrite, layout: str) -> None:
    tree = tree_from(text)
    apart = edited(tree, rewrite(tree))
    assert apart is not None
    together = tree_from(joined(text, LAYOUTS[layout]))
    assert ast.dump(together.root) == ast.dump(tree.root)
    assert together.text != text

    found = edited(together, rewrite(together))

    assert found is None or ast.dump(ast.parse(found)) == ast.dump(ast.parse(apart))


def test_places_on_a_shared_line() -> None:
    tree = tree_from("def f(a):\n    with b:\n        for c in a: d = c; e = d\n    return d\n")

    assert statement_at(tree, 3) is None
    assert loop_at(tree, 3) is at(tree, "for c")
    assert function_at(tree, 3) is at(tree, "def f")
    assert with_statements_around(tree, 3) == [at(tree, "with b")]
    inside = tree_from("class A:\n    x = 1; y = 2\n")
    assert class_at(inside, 2) is at(inside, "class A")


def test_what_defines_a_value_on_a_shared_line_is_not_guessed() -> None:
    apart = tree_from("x = old()\nx = f()\ny = g(x)\nx = h()\n")
    together = tree_from("x = old()\nx = f(); y = g(x); x = h()\n")

    assert slice_of(apart, apart.root, "x", 3, 1) == [at(apart, "x = f")]
    assert slice_of(together, together.root, "x", 2, 1) == []
    assert slice_of(together, together.root, "y", 3, 2) == []
