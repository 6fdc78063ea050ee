"""Join several backward passes into one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.expressions import filled
from gradwright.doctor.syntax.layout import ends_line, starts_line
from gradwright.doctor.syntax.names import accesses, any_touches, dotted, reads_in, reads_of
from gradwright.doctor.syntax.precedence import Level, fitted, outer_bounds
from gradwright.doctor.syntax.statements import deleted
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Loop, block_of, scope_of

_STEPS = ("step", "zero_grad", "minimize", "update", "backward")


@rewrite
def sum_losses(tree: SourceTree, loop: Loop) -> list[Change]:
    """`for loss in losses: loss.backward()` to `sum(losses).backward()`.

    Takes also `.items()`, `enumerate` and weighted losses. Refuses if the loop does more.
    """
    if not isinstance(loop, ast.For) or len(loop.body) != 1 or loop.orelse:
        raise Unsafe
    receiver = receiver_of(loop.body[0], ("retain_graph",))
    if _read_later(tree, loop):
        raise Unsafe
    if not ends_line(tree, loop) or not starts_line(tree, loop):
        raise Unsafe
    text = f"sum({_summed(tree, loop, receiver)}).backward()"
    comment = tree.text[tree.end(loop.iter) : tree.start(loop.body[0])]
    if "#" in comment:
        raise Unsafe
    return [Change(tree.start(loop), tree.end(loop), text)]


def _summed(tree: SourceTree, loop: ast.For, receiver: ast.expr) -> str:
    """What `sum` adds up."""
    start, end = outer_bounds(tree, loop.iter)
    over = fitted(tree.text[start:end], Level.TEST)
    names = [dotted(one) for one in getattr(loop.target, "elts", [loop.target])]
    read = [name for name in names if name in reads_in(receiver)]
    if isinstance(loop.target, ast.Tuple) and names[1:] == read and len(names) == 2:
        plain = _without_first(tree, loop.iter)
        if plain is not None and dotted(receiver) == names[1]:
            return plain
        if plain is not None:
            return f"{_source(tree, receiver)} for {names[1]} in {plain}"
    if dotted(receiver) is not None and dotted(receiver) == dotted(loop.target):
        return over
    if not read:
        raise Unsafe
    target = tree.source(loop.target)
    return f"{_source(tree, receiver)} for {target} in {fitted(over, Level.OR)}"


def _without_first(tree: SourceTree, over: ast.expr) -> str | None:
    """The plain iterable under `x.items()` or `enumerate(x)`."""
    if not isinstance(over, ast.Call) or over.keywords:
        return None
    if isinstance(over.func, ast.Attribute) and over.func.attr == "items" and not over.args:
        return f"{tree.text[tree.start(over) : tree.end(over.func.value)]}.values()"
    if dotted(over.func) == "enumerate" and over.args:
        return _source(tree, over.args[0])
    return None


def _source(tree: SourceTree, expression: ast.expr) -> str:
    return tree.text[slice(*outer_bounds(tree, expression))]


def _read_later(tree: SourceTree, loop: ast.For) -> bool:
    """True if the loop's variables are read after the loop."""
    names = {access.name for access in accesses(loop.target)}
    scope = scope_of(tree, loop)
    return any(tree.start(one) >= tree.end(loop) for name in names for one in reads_of(scope, name))


def receiver_of(statement: ast.stmt, droppable: Sequence[str] = ()) -> ast.expr:
    """`loss` of a statement `loss.backward()` whose arguments may all go.

    Raises Unsafe for other statements.
    """
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        raise Unsafe
    if call.func.attr != "backward" or call.args:
        raise Unsafe
    if any(keyword.arg not in droppable for keyword in call.keywords):
        raise Unsafe
    return call.func.value


@rewrite
def join_backwards(tree: SourceTree, statements: Sequence[ast.stmt]) -> list[Change]:
    """Separate `a.backward(…)`, `b.backward()` of one block to `(a + b).backward()` at the last.

    Refuses if a step, a `zero_grad`, a read of `.grad` or a new value of a loss lies between.
    """
    if len(statements) < 2:
        raise Unsafe
    ordered = sorted(statements, key=tree.start)
    kept = ("retain_graph", "create_graph")
    receivers = [receiver_of(one, ("retain_graph",)) for one in ordered[:-1]]
    last = receiver_of(ordered[-1], kept)
    _check_between(tree, ordered, receivers)
    terms = [_source(tree, one) for one in [*receivers, last]]
    added = [fitted(terms[0], Level.SUM), *(fitted(one, Level.PRODUCT) for one in terms[1:])]
    text = filled("({})", " + ".join(added))
    return [Change(*outer_bounds(tree, last), f"({text})"), *deleted(tree, ordered[:-1])]


def _check_between(
    tree: SourceTree, ordered: Sequence[ast.stmt], receivers: Sequence[ast.expr]
) -> None:
    block, first = block_of(tree, ordered[0])
    if any(one not in block for one in ordered):
        raise Unsafe
    between = [one for one in block[first : block.index(ordered[-1])] if one not in ordered]
    bound = [one.name for two in between for one in accesses(two) if one.kind == "bind"]
    if any_touches(bound, [name for one in receivers for name in reads_in(one)]):
        raise Unsafe
    if any(_uses_gradients(node) for one in between for node in ast.walk(one)):
        raise Unsafe


def _uses_gradients(node: ast.AST) -> bool:
    """True for what must see the gradients of the earlier backward alone."""
    if isinstance(node, ast.Attribute):
        return node.attr in ("grad", *_STEPS) or "clip_grad" in node.attr
    return isinstance(node, ast.Name) and "clip_grad" in node.id
