"""What an in-place operation writes to, read from the source at its place."""

import ast
from dataclasses import dataclass

from gradwright.diagnostic import Span
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.journal import Journal, Site, Write
from gradwright.doctor.syntax.calls import keyword_of
from gradwright.doctor.syntax.names import is_in_place_method
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    FUNCTIONS,
    Function,
    enclosing,
    expression_at,
    span_of,
    statement_at,
    statement_of,
)

_BIG = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.Try)


@dataclass(frozen=True, slots=True)
class Target:
    """An in-place operation in the source."""

    tree: SourceTree
    statement: ast.stmt
    operation: ast.stmt | ast.Call  # the augmented or index assignment, or the call
    written: ast.expr  # the tensor's variable, without indices

    @property
    def name(self) -> str:
        """The user's word for the tensor."""
        return self.tree.source(self.written)

    @property
    def span(self) -> Span:
        """The operation's text."""
        return span_of(self.tree, self.operation)


def target_of_write(journal: Journal, write: Write) -> Target | None:
    """The in-place operation behind a recorded write."""
    stack = journal.places.stack(write.place)
    if not stack:
        return None
    exact = write.instruction if write.code is stack[0].code else -1
    return target_at(stack[0], exact)


def target_at(site: Site, instruction: int = -1) -> Target | None:
    """The in-place operation that ran at a site, if the source shows one."""
    tree = tree_of(site.file)
    if tree is None:
        return None
    statement = statement_at(tree, site.line)
    if instruction >= 0:
        exact = _target_in_span(tree, span_of_site(site, instruction))
        if exact is not None:
            return exact
    return None if statement is None else target_of_statement(tree, statement)


def _target_in_span(tree: SourceTree, span: Span) -> Target | None:
    if span.end_line is None or span.end_column is None:
        return None
    statement = statement_at(tree, span.line, span.column)
    if isinstance(statement, ast.AugAssign):
        return target_of_statement(tree, statement)
    found = expression_at(tree, span.line, span.column, span.end_line, span.end_column)
    if isinstance(found, ast.Call):
        return _target_of_call(tree, found)
    if isinstance(found, ast.Subscript) and isinstance(statement, ast.Assign):
        return _target(tree, statement, statement, found)
    return None


def target_of_statement(tree: SourceTree, statement: ast.stmt) -> Target | None:
    """The in-place operation of a simple statement."""
    if isinstance(statement, _BIG):
        return None
    if isinstance(statement, ast.AugAssign):
        return _target(tree, statement, statement, statement.target)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        return _target(tree, statement, statement, statement.targets[0])
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    for call in calls:
        if is_in_place_method(call.func) or keyword_of(call, "out") or keyword_of(call, "inplace"):
            return _target_of_call(tree, call)
    return None


def _target_of_call(tree: SourceTree, call: ast.Call) -> Target | None:
    statement = statement_of(tree, call)
    out = keyword_of(call, "out")
    if statement is None:
        return None
    if out is not None:
        return _target(tree, statement, call, out.value)
    if is_in_place_method(call.func):
        base: ast.expr = call
        while isinstance(base, ast.Call) and is_in_place_method(base.func):
            assert isinstance(base.func, ast.Attribute)
            base = base.func.value
        return _target(tree, statement, call, base)
    return _target(tree, statement, call, call.args[0]) if call.args else None


def _target(
    tree: SourceTree, statement: ast.stmt, operation: ast.stmt | ast.Call, written: ast.expr
) -> Target:
    while isinstance(written, ast.Subscript) or (
        isinstance(written, ast.Attribute) and written.attr in ("data", "T", "mT")
    ):
        written = written.value
    return Target(tree, statement, operation, written)


def is_call_of_method(target: Target) -> bool:
    """Whether the operation is `x.add_(…)`."""
    operation = target.operation
    return isinstance(operation, ast.Call) and is_in_place_method(operation.func)


def function_around(target: Target) -> Function | None:
    """The function that holds the operation."""
    return enclosing(target.tree, target.statement, FUNCTIONS)
