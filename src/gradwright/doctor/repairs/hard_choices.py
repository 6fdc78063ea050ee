"""Fixes for choices that have no gradient: a threshold, `argmax`, a cast to integers."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Operation
from gradwright.doctor.syntax.expressions import replace_expression
from gradwright.doctor.syntax.imports import torch_name
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.precedence import Level, fitted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import is_named

Edits = tuple[Edit, ...]
_CASTS = {"long", "int", "short", "byte", "bool"}
_PROBABILITIES = {"sigmoid", "softmax", "hardsigmoid", "sigmoid_"}
_WHOLE_NUMBERS = {"embedding", "one_hot", "gather", "index_select", "nll_loss", "__getitem__"}


def soften(
    crash: Crash, tree: SourceTree, node: ast.expr, cut: Operation
) -> Iterator[tuple[str, Edits | None]]:
    """Ways to write a choice so that it has a gradient."""
    if needs_whole_numbers(crash, cut):
        yield "use the probabilities instead of the choice", _soft_one_hot(tree, node)
        return
    if isinstance(node, ast.Compare):
        yield from _compared(crash, tree, node, cut)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "argmax":
            title = "take the expected index, which has a gradient"
            yield title, _expectation(crash, tree, node, cut)
        if node.func.attr in _CASTS:
            source = tree.source(node.func.value)
            yield "keep the real values", replace_expression(tree, node, source)


def _soft_one_hot(tree: SourceTree, node: ast.expr) -> Edits | None:
    """`one_hot(scores.argmax(-1), n)` as `scores.softmax(-1)`."""
    around = tree.parents.get(node)
    if not isinstance(around, ast.Call) or not is_named(tree, around.func, {"one_hot"}):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    dims = [*node.args, *(keyword.value for keyword in node.keywords)]
    if node.func.attr != "argmax" or len(dims) != 1 or _constant(dims[0]) not in (1, -1):
        return None
    scores = tree.source(node.func.value)
    return replace_expression(tree, around, f"{scores}.softmax({tree.source(dims[0])})")


def needs_whole_numbers(crash: Crash, cut: Operation) -> bool:
    """Whether the result was used as an index or a class."""
    entries = crash.journal.operations.entries
    users = [one for one in entries[-5_000:] if cut.index in one.parents]
    return any(one.name in _WHOLE_NUMBERS and not _is_looked_into(one, cut) for one in users)


def _is_looked_into(user: Operation, cut: Operation) -> bool:
    """Whether `x[...]` reads from the result, which is then no index."""
    return user.name == "__getitem__" and user.parents[0] == cut.index


def _compared(
    crash: Crash, tree: SourceTree, node: ast.Compare, cut: Operation
) -> Iterator[tuple[str, Edits | None]]:
    """`p > 0.5` as `p` for a probability, else as a sigmoid of the difference."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return
    left, right = tree.source(node.left), tree.source(node.comparators[0])
    greater = isinstance(node.ops[0], ast.Gt | ast.GtE)
    parents = [crash.journal.operations[index] for index in cut.parents]
    sources = {parent.name for parent in parents if parent is not None}
    if sources & _PROBABILITIES and greater:
        yield "use the probabilities themselves", replace_expression(tree, node, left)
        return
    high, low = (left, right) if greater else (right, left)
    high, low = fitted(high, Level.SUM), fitted(low, Level.PRODUCT)
    text = f"{torch_name(tree) or 'torch'}.sigmoid({high} - {low})"
    yield "use a smooth step", replace_expression(tree, node, text)


def _expectation(crash: Crash, tree: SourceTree, node: ast.Call, cut: Operation) -> Edits | None:
    """`scores.argmax(d)` as the mean index under `softmax(scores, d)`."""
    assert isinstance(node.func, ast.Attribute)
    arguments = list(node.args)
    scores: ast.expr = node.func.value
    if dotted(scores) == torch_name(tree):
        scores, arguments = arguments[0], arguments[1:]
    text, shape = dotted(scores), _input_shape(crash, cut)
    keep = any(keyword.arg == "keepdim" for keyword in node.keywords)
    dims = [*arguments, *(one.value for one in node.keywords if one.arg in ("dim", "axis"))]
    dim = _constant(dims[0]) if len(dims) == 1 else None
    if text is None or keep or dim is None or not -len(shape) <= dim < len(shape):
        return None
    module = torch_name(tree) or "torch"
    last = dim % len(shape) == len(shape) - 1
    moved = "" if last else f".movedim({dim}, -1)"
    count = f"{module}.arange({text}.shape[{dim}], device={text}.device)"
    new = f"({text}.softmax({dim}){moved} * {count}).sum(-1)"
    return replace_expression(tree, node, new)


def _input_shape(crash: Crash, cut: Operation) -> tuple[int, ...]:
    parent = crash.journal.operations[cut.parents[0]] if cut.parents else None
    return parent.shape if parent is not None else ()


def _constant(node: ast.expr) -> int | None:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if not isinstance(inner, ast.Constant) or not isinstance(inner.value, int):
        return None
    return -inner.value if negative else inner.value
