"""From sites, frames and operations to stretches of source text."""

import ast
from types import CodeType

from torch.autograd.graph import Node

from gradwright.diagnostic import Span
from gradwright.doctor.crash import CrashFrame
from gradwright.doctor.journal import Journal, Operation, Site, Write
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import span_of, span_of_bytes, statement_at


def span_of_site(site: Site, instruction: int = -1) -> Span:
    """The expression that ran at `site`.

    With the bytecode offset of the instruction it is the very call; without it, the value of the
    statement on that line.
    """
    tree = tree_of(site.file)
    if tree is None or not 1 <= site.line <= len(tree.starts):
        return Span(site.file, site.line)
    if instruction >= 0:
        exact = _span_of_instruction(tree, site.code, instruction)
        if exact is not None and not _is_block(tree, exact):
            return exact
    statement = statement_at(tree, site.line)
    if statement is None:
        return Span(site.file, site.line)
    return _clip(span_of(tree, _value_of(statement, site.line)), site.line)


def span_of_frame(frame: CrashFrame) -> Span:
    """The expression that a frame was running when the exception passed."""
    return span_of_site(frame.site, frame.instruction)


def span_of_node(journal: Journal, node: Node, site: Site) -> Span:
    """The expression at `site` that made `node`, exact where its operation was recorded."""
    number = node._sequence_nr()
    for operation in journal.operations.made_between(number, number):
        if operation.code is site.code:
            span = span_of_site(site, operation.instruction)
            if (
                span.line <= site.line <= (span.end_line or span.line)
            ):  # else the site is not where it was made
                return span
    return span_of_site(site)


def span_of_operation(journal: Journal, operation: Operation | Write) -> Span | None:
    """The expression that ran a recorded operation."""
    stack = journal.places.stack(operation.place)
    if not stack:
        return None
    exact = operation.instruction if operation.code is stack[0].code else -1
    return span_of_site(stack[0], exact)


def _span_of_instruction(tree: SourceTree, code: CodeType, instruction: int) -> Span | None:
    positions = list(code.co_positions())
    index = instruction // 2
    if index >= len(positions):
        return None
    line, end_line, column, end_column = positions[index]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    if end_line > len(tree.starts):
        return None
    return span_of_bytes(tree, line, column, end_line, end_column)


def _is_block(tree: SourceTree, span: Span) -> bool:
    """A `for` or `with` gives its whole block as the position of what its header does."""
    several = span.end_line is not None and span.end_line > span.line
    return several and hasattr(statement_at(tree, span.line, span.column), "body")


def _value_of(statement: ast.stmt, line: int) -> ast.expr | ast.stmt:
    """The part of a statement that computes."""
    value: ast.expr | None = None
    if isinstance(statement, ast.Assign | ast.Return | ast.AnnAssign | ast.Expr):
        value = statement.value
    elif isinstance(statement, ast.For | ast.AsyncFor):
        value = statement.iter
    elif isinstance(statement, ast.If | ast.While):
        value = statement.test
    elif isinstance(statement, ast.With | ast.AsyncWith):
        value = statement.items[0].context_expr
    if value is None or not value.lineno <= line <= (value.end_lineno or value.lineno):
        return statement
    return value


def _clip(span: Span, line: int) -> Span:
    """A long compound statement is marked at the line in question only."""
    if span.end_line is not None and span.end_line - span.line > 8:
        return Span(span.file, line)
    return span
