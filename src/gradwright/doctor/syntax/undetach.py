"""Give those who read a detached name the tensor with its history."""

import ast

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.names import any_touches, assignments_to, binds_in, dotted, reads_of
from gradwright.doctor.syntax.precedence import fitted, needed_level
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import scope_of, statement_of


@rewrite
def use_history(tree: SourceTree, detach: ast.expr) -> list[Change]:
    """After `flat = x.detach()`: `x` in place of `flat`, but for what attributes are made of.

    Statistics want the value only: with the history they would drag it into the next step.
    """
    value, name = _history_and_name(tree, detach)
    scope = scope_of(tree, detach)
    readers = [(read, statement_of(tree, read)) for read in reads_of(scope, name)]
    kept = {statement for _, statement in readers if statement and _makes_attribute(statement)}
    freed = [read for read, statement in readers if statement not in kept]
    if not kept or not freed or len(assignments_to(scope, name)) != 1:
        raise Unsafe
    return [
        Change(tree.start(read), tree.end(read), fitted(value, needed_level(tree, read)))
        for read in freed
    ]


def _history_and_name(tree: SourceTree, detach: ast.expr) -> tuple[str, str]:
    """`x` and `flat` of `flat = x.detach()`, if `x` keeps its meaning."""
    statement = statement_of(tree, detach)
    function = detach.func if isinstance(detach, ast.Call) else None
    if (
        not isinstance(statement, ast.Assign)
        or statement.value is not detach
        or not isinstance(statement.targets[0], ast.Name)
        or not isinstance(function, ast.Attribute)
    ):
        raise Unsafe
    value = dotted(function.value)
    later = [one for one in ast.walk(scope_of(tree, detach)) if _comes_after(one, statement)]
    if value is None or any_touches({name for one in later for name in binds_in(one)}, [value]):
        raise Unsafe
    return value, statement.targets[0].id


def _comes_after(node: ast.AST, statement: ast.stmt) -> bool:
    return isinstance(node, ast.stmt) and node.lineno > statement.lineno


def _makes_attribute(statement: ast.stmt) -> bool:
    return any("." in name for name in binds_in(statement))
