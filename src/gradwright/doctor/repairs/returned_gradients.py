"""Repairs of what a custom Function's `backward` returns."""

import ast
import re
from collections.abc import Sequence

from gradwright.doctor.evidence.function_class import FunctionClass
from gradwright.doctor.syntax import (
    Edits,
    add_return,
    combine,
    dead_stores,
    replace_expression,
    wrap_expression,
)

_WORDS = re.compile(r"^(?:d_?|grads?_|g_)|_?(?:grads?|bar)$")


def return_computed(function: FunctionClass) -> Edits | None:
    """Return the gradients that `backward` computes and drops, in the order of the inputs."""
    tree, backward = function.tree, function.source("backward")
    if tree is None or backward is None:
        return None
    stored = dead_stores(tree, backward)
    inputs = function.inputs[: len(function.differentiable)]
    names = matched(stored, inputs, function.differentiable)
    return None if names is None else add_return(tree, backward, names)


def fit_count(function: FunctionClass) -> Edits | None:
    """One gradient for each input: `None` for those that have none, nothing beyond."""
    tree, returns = function.tree, function.returns()
    if tree is None or not returns:
        return None
    edits: list[Edits | None] = []
    for statement in returns:
        value = statement.value
        assert value is not None
        given = [tree.source(one) for one in _elements(value)]
        wanted = fitted(given, function.differentiable)
        if wanted is None:
            return None
        if wanted != given:
            text = ", ".join(wanted) if len(wanted) > 1 else wanted[0]
            edits.append(replace_expression(tree, value, text))
    return combine(tree, *edits) if edits else None


def fit_shape(
    function: FunctionClass, index: int, got: Sequence[int], expected: Sequence[int]
) -> Edits | None:
    """Transpose a returned gradient, or give it the dimensions of size one that it lacks."""
    tree, returns = function.tree, function.returns()
    method = reshaping(got, expected)
    if tree is None or len(returns) != 1 or method is None:
        return None
    value = returns[0].value
    assert value is not None
    elements = _elements(value)
    if index >= len(elements):
        return None
    return wrap_expression(tree, elements[index], "{}" + method)


def element_returned(function: FunctionClass, index: int) -> ast.expr | None:
    """The expression of one returned gradient, if `backward` has one `return`."""
    returns = function.returns()
    if len(returns) != 1 or returns[0].value is None:
        return None
    elements = _elements(returns[0].value)
    return elements[index] if index < len(elements) else None


def _elements(value: ast.expr) -> list[ast.expr]:
    return list(value.elts) if isinstance(value, ast.Tuple) else [value]


def fitted(given: list[str], differentiable: Sequence[bool]) -> list[str] | None:
    """What to return for each input: `None` where it needs no gradient and none was given."""
    missing = len(differentiable) - len(given)
    if any(text.startswith("*") for text in given):
        return None
    if missing < 0:
        return _shortened(given, -missing)
    without = [index for index, needs in enumerate(differentiable) if not needs]
    if missing > len(without):
        return None
    chosen = set(without[len(without) - missing :])
    rest = iter(given)
    return ["None" if index in chosen else next(rest) for index in range(len(differentiable))]


def _shortened(given: list[str], extra: int) -> list[str]:
    """Without the last `None`s, else without the last elements."""
    nones = [index for index, text in enumerate(given) if text == "None"]
    gone = (
        set(nones[-extra:]) if len(nones) >= extra else set(range(len(given) - extra, len(given)))
    )
    return [text for index, text in enumerate(given) if index not in gone]


def matched(
    stored: list[str], inputs: list[str], differentiable: Sequence[bool]
) -> list[str] | None:
    """For each input the variable that is named after it, else the variables in their order."""
    found = [_named_after(name, stored) for name in inputs]
    known = [name for name in found if name is not None]
    complete = all(name or not need for name, need in zip(found, differentiable, strict=False))
    if known and complete and len(set(known)) == len(known):
        return [name or "None" for name in found]
    wanted = sum(differentiable)
    if len(stored) == len(inputs):
        return stored
    if len(stored) != wanted:
        return None
    rest = iter(stored)
    return [next(rest) if need else "None" for need in differentiable]


def _named_after(name: str, stored: list[str]) -> str | None:
    """`grad_w` for `weight`."""
    found = [one for one in stored if _same(_WORDS.sub("", one), name)]
    return found[0] if len(found) == 1 else None


def _same(part: str, name: str) -> bool:
    return bool(part) and (name.startswith(part) or part.startswith(name))


def reshaping(got: Sequence[int], expected: Sequence[int]) -> str | None:
    """The method call that brings a gradient from one shape to another; None if none does.

    Sums over broadcast dimensions are not among them: autograd takes those itself.
    """
    if len(got) == 2 and list(got) == list(reversed(expected)):
        return ".T"
    if [size for size in got if size != 1] == [size for size in expected if size != 1]:
        return f".reshape({', '.join(map(str, expected))})"
    return None
