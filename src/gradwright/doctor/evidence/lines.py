"""A line of the user's program that computed something, as syntax."""

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import CodeType

import torch
from torch.autograd.graph import Node

from gradwright.diagnostic import Span
from gradwright.doctor.crash import CrashFrame
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.journal import Journal, Operation, Site
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    Function,
    call_at,
    expression_at,
    function_at,
    is_named,
    statement_at,
    statement_of,
)


@dataclass(frozen=True, slots=True)
class Line:
    """Where user code ran; with `instruction` it is one call or operator of that line."""

    site: Site
    instruction: int = -1

    @property
    def tree(self) -> SourceTree | None:
        """The parsed file."""
        tree = tree_of(self.site.file)
        return tree if tree is not None and self.site.line <= len(tree.lines) else None

    @property
    def span(self) -> Span:
        """The stretch of text to point at."""
        return span_of_site(self.site, self.instruction)

    @property
    def statement(self) -> ast.stmt | None:
        """The innermost statement on the line; of several on it, the one that ran, if known."""
        tree, expression = self.tree, self.expression
        if tree is None:
            return None
        alone = statement_at(tree, self.site.line)
        return alone if alone or expression is None else statement_of(tree, expression)

    @property
    def function(self) -> Function | None:
        """The function around the line."""
        tree = self.tree
        return None if tree is None else function_at(tree, self.site.line)

    @property
    def expression(self) -> ast.expr | None:
        """The expression that ran, if the instruction tells it."""
        tree, span = self.tree, self.span
        if tree is None or self.instruction < 0 or span.end_column is None:
            return None
        end = span.end_line or span.line
        return expression_at(tree, span.line, span.column, end, span.end_column)


def line_of_frame(frame: CrashFrame) -> Line:
    """What a frame was running when the exception passed."""
    return Line(frame.site, frame.instruction)


def call_of_frame(frame: CrashFrame, names: Collection[str]) -> ast.Call | None:
    """The call with one of these names that a frame was in, or the only one on its line."""
    line = line_of_frame(frame)
    tree, ran = line.tree, line.expression
    if tree is None:
        return None
    if isinstance(ran, ast.Call) and is_named(tree, ran.func, names):
        return ran
    return call_at(tree, frame.line, names)


def line_of_operation(journal: Journal, operation: Operation) -> Line | None:
    """The user's line that ran a recorded operation."""
    site = shown_site(journal.places.stack(operation.place))
    if site is None:
        return None
    return Line(site, operation.instruction if operation.code is site.code else -1)


def line_of_node(journal: Journal, node: Node) -> Line | None:
    """The user's line that made a graph node, exact where its operation was recorded."""
    number = node._sequence_nr()
    site = shown_site(journal.stack_of_node(number))
    if site is None:
        return None
    for operation in journal.operations.made_between(number, number):
        if operation.code is site.code:
            return Line(site, operation.instruction)
    return Line(site)


def line_of_tensor(journal: Journal, tensor: torch.Tensor) -> Line | None:
    """The user's line that computed a tensor."""
    operation = journal.operations.of(tensor)
    if operation is not None and not operation.source:
        return line_of_operation(journal, operation)
    return line_of_node(journal, tensor.grad_fn) if tensor.grad_fn is not None else None


def shown_site(stack: Iterable[Site]) -> Site | None:
    """The innermost site whose source can be shown, else the innermost."""
    sites = tuple(stack)
    shown = (site for site in sites if tree_of(site.file) is not None)
    return next(shown, sites[0] if sites else None)


def line_of_code(code: CodeType) -> Line:
    """The first line of a function."""
    return Line(Site(code.co_filename, code.co_firstlineno, code.co_qualname, code))
