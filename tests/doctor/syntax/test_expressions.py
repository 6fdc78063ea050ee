from __future__ import annotations

import pytest

from gradwright.doctor.syntax import (
    append_method,
    replace_expression,
    strip_method,
    wrap_expression,
    wrap_value,
)
from tests.doctor.syntax.sources import at, edited, expr, tree_from

MEAN, DETACH = "({}).mean()", "{}.detach()"
VALUES = [
    ("return 2 - 2 * x", MEAN, None, "return (2 - 2 * x).mean()"),
    ("return f(x)", MEAN, None, "return f(x).mean()"),
    ("return (a + b)", MEAN, None, "return (a + b).mean()"),
    ("return (a) + (b)", MEAN, None, "return ((a) + (b)).mean()"),
    ("return -x", DETACH, None, "return (-x).detach()"),
    ("return a, b", "tuple({})", None, "return tuple((a, b))"),
    ("return a, b + c", DETACH, 1, "return a, (b + c).detach()"),
    ("return (a, b)", DETACH, 0, "return (a.detach(), b)"),
    ("return (a), (b)", DETACH, 0, "return (a).detach(), (b)"),
    ("return a, *b", DETACH, 1, None),
    ("return a", DETACH, 0, None),
    ("return", DETACH, None, None),
    ("x = y = a + b  # note", DETACH, None, "x = y = (a + b).detach()  # note"),
    ("x = 1", DETACH, None, "x = (1).detach()"),
    ("x = await y", DETACH, None, "x = (await y).detach()"),
    ("x = y if c else z", "f({}, 1)", None, "x = f(y if c else z, 1)"),
    ("x = y if c else z", "{} + 1", None, "x = (y if c else z) + 1"),
    ("x = lambda: y", "f(k={})", None, "x = f(k=lambda: y)"),
    ("x = (\n    a\n    + b\n)", DETACH, None, "x = (\n    a\n    + b\n).detach()"),
    ("x = a + \\\n    b", DETACH, None, "x = (a + \\\n    b).detach()"),
    ("x = f(a)(\n    b\n)", DETACH, "x", "x = f(a)(\n    b\n).detach()"),
    ("a, self.b = c, d", DETACH, "self.b", "a, self.b = c, d.detach()"),
    ("a, self.b = f(x)", DETACH, "self.b", "a, self.b = f(x); self.b = self.b.detach()"),
    ("a, *b = c, d", DETACH, "a", None),
    ("x: T = y", DETACH, None, "x: T = y.detach()"),
    ("x += y * z", DETACH, None, "x += (y * z).detach()"),
    ("é = 'ß' + x", DETACH, None, "é = ('ß' + x).detach()"),
    ("x = [y := 1, 2]", DETACH, 0, "x = [(y := 1).detach(), 2]"),
    ("x = (y := z)", DETACH, None, "x = (y := z).detach()"),
    ("x = y + 1; z = 2", DETACH, None, "x = (y + 1).detach(); z = 2"),
    ("pass", DETACH, None, None),
    ("x = y", "{} +", None, None),
    ("x = y", "f()", None, None),
]


@pytest.mark.parametrize(("before", "template", "element", "after"), VALUES)
def test_wrap_value(
    before: str, template: str, element: int | str | None, after: str | None
) -> None:
    head = "async def f(): "
    text = head + before + "\n" if "\n" not in before else before + "\n"
    tree = tree_from(text)
    if text.startswith(head):
        after = None if after is None else head + after
    result = edited(
        tree, wrap_value(tree, at(tree, before.split("  #")[0].split(";")[0]), template, element)
    )
    assert result == (None if after is None else after + "\n")


def test_wrap_an_element_on_the_next_line() -> None:
    tree = tree_from("if c:\n\ty, self.h = f(x)  # note\nz\n")
    assert edited(tree, wrap_value(tree, at(tree, "y,"), DETACH, "self.h")) == (
        "if c:\n\ty, self.h = f(x)  # note\n\tself.h = self.h.detach()\nz\n"
    )


EXPRESSIONS = [
    ("y = f(a + b, c)\n", "a + b", ".abs()", "y = f((a + b).abs(), c)\n"),
    ("y = f((a + b), c)\n", "a + b", ".abs()", "y = f((a + b).abs(), c)\n"),
    ("y = f(a)\n", "a", ".abs()", "y = f(a.abs())\n"),
    ("y = -a\n", "a", ".abs()", "y = -a.abs()\n"),
    ("y = a.b[a]\n", "a.b", ".abs()", "y = a.b.abs()[a]\n"),
    ("é = ß + ß\n", "ß + ß", ".abs()", "é = (ß + ß).abs()\n"),
    ("y = f'{a}'\n", "a", ".abs()", None),
    ("y = sum(a for a in (b))\n", "b", ".abs()", "y = sum(a for a in (b).abs())\n"),
    ("y = (\n    a  # one\n    + b\n)\n", "b", ".abs()", "y = (\n    a  # one\n    + b.abs()\n)\n"),
]


@pytest.mark.parametrize(("before", "expression", "method", "after"), EXPRESSIONS)
def test_append_method(before: str, expression: str, method: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, append_method(tree, expr(tree, expression), method)) == after


def test_strip_method() -> None:
    tree = tree_from("y = (a * b).exp().sum()\nz = f(x)\n")
    assert edited(tree, strip_method(tree, expr(tree, "(a * b).exp()"), "exp")) == (
        "y = (a * b).sum()\nz = f(x)\n"
    )
    assert strip_method(tree, expr(tree, "(a * b).exp()"), "log") is None
    assert strip_method(tree, expr(tree, "f(x)"), "f") is None


REPLACED = [
    ("y = a * b\n", "a", "c + d", "y = (c + d) * b\n"),
    ("y = a + b\n", "a", "c + d", "y = c + d + b\n"),
    ("y = a + b\n", "b", "c + d", "y = a + (c + d)\n"),
    ("y = a ** b\n", "b", "c ** d", "y = a ** c ** d\n"),
    ("y = a ** b\n", "a", "c ** d", "y = (c ** d) ** b\n"),
    ("y = f(a, b)\n", "a", "c, d", "y = f((c, d), b)\n"),
    ("y = f(a, b)\n", "a", "c if d else e", "y = f(c if d else e, b)\n"),
    ("y = a.b\n", "a", "-c", "y = (-c).b\n"),
    ("y = not a\n", "a", "b or c", "y = not (b or c)\n"),
    ("y = a and b\n", "a", "c or d", "y = (c or d) and b\n"),
    ("y = (a)\n", "a", "c, d", "y = (c, d)\n"),
    ("y = a\n", "a", "c, d", "y = c, d\n"),
    ("y = f(*a)\n", "a", "c or d", "y = f(*(c or d))\n"),
    ("y = a\n", "a", "c +", None),
]


@pytest.mark.parametrize(("before", "old", "new", "after"), REPLACED)
def test_replace_expression(before: str, old: str, new: str, after: str | None) -> None:
    tree = tree_from(before)
    assert edited(tree, replace_expression(tree, expr(tree, old), new)) == after


def test_wrap_expression_in_a_call() -> None:
    tree = tree_from("y = f(x for x in y)\n")
    result = edited(tree, wrap_expression(tree, expr(tree, "f(x for x in y)"), "g({})"))
    assert result == "y = g(f(x for x in y))\n"
