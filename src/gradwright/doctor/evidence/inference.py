"""Where inference mode was on when a tensor was made."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.holders import Holder, find_holders
from gradwright.doctor.evidence.lines import line_of_frame
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.evidence.spans import span_of_frame
from gradwright.doctor.evidence.values import tensor_in_frame
from gradwright.doctor.journal import Site
from gradwright.doctor.syntax.decorators import context_name
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    Function,
    With,
    ancestors,
    any_statement_at,
    decorators_of,
    expression_at,
)

_SIGNS = ("nference tensor", "InferenceMode", "inference mode")
_CONTEXT = "torch.inference_mode"


@dataclass(frozen=True, slots=True)
class InferenceContext:
    """A `with torch.inference_mode():` or a function decorated with it."""

    tree: SourceTree
    owner: With | Function
    expression: ast.expr  # the context itself


@dataclass(frozen=True, slots=True)
class InferenceTensor:
    """A tensor that was made in inference mode and then met autograd."""

    name: str  # the user's word where it was met
    made: Site | None  # the line that made it, in inference mode
    context: InferenceContext | None


def find_inference_tensor(crash: Crash) -> InferenceTensor | None:
    """The tensor on the failing line, else any that the user's variables hold."""
    if not any(sign in crash.message for sign in _SIGNS):
        return None
    holders = list(_met(crash))
    for name, tensor in holders:
        found = _made_at(crash, tensor)
        if found is not None:
            return InferenceTensor(name, found[0], found[1])
    name = holders[0][0] if holders else ""
    context = _only_context(crash)
    return InferenceTensor(name, None, context) if name or context else None


def _met(crash: Crash) -> Iterator[tuple[str, torch.Tensor]]:
    for frame in reversed(crash.user_frames):
        yield from _on_line(frame)
    for holder in find_holders(crash, _is_inference):
        yield _path(holder), holder.tensor


def _on_line(frame: CrashFrame) -> Iterator[tuple[str, torch.Tensor]]:
    tree = tree_of(frame.file)
    if tree is None:
        return
    exact = expression_of_frame(tree, frame)
    statement = line_of_frame(frame).statement
    parts = [part for part in (exact, statement) if part is not None]
    for node in (node for part in parts for node in ast.walk(part)):
        if isinstance(node, ast.Name | ast.Attribute):
            tensor = tensor_in_frame(frame, node)
            if tensor is not None and _is_inference(tensor):
                yield dotted(node) or "", tensor


def expression_of_frame(tree: SourceTree, frame: CrashFrame) -> ast.expr | None:
    """The expression that the frame was computing."""
    span = span_of_frame(frame)
    if span.end_line is None or span.end_column is None:
        return None
    return expression_at(tree, span.line, span.column, span.end_line, span.end_column)


def _is_inference(tensor: torch.Tensor) -> bool:
    return tensor.is_inference()


def _path(holder: Holder) -> str:
    return holder.path if holder.kind != "item" else holder.variable


def _made_at(crash: Crash, tensor: torch.Tensor) -> tuple[Site, InferenceContext] | None:
    """The latest operation behind the tensor that ran in a user's inference mode."""
    operations = crash.journal.operations
    made = operations.of(tensor)
    if made is None:
        return None
    for operation in operations.ancestors(made):
        stack = crash.journal.places.stack(operation.place)
        for site in stack:
            context = context_at(site)
            if context is not None:
                return stack[0], context
    return None


def context_at(site: Site) -> InferenceContext | None:
    """The inference mode that the function of a site had on at its line."""
    tree = tree_of(site.file)
    statement = any_statement_at(tree, site.line) if tree is not None else None
    if tree is None or statement is None:
        return None
    for outer in (statement, *ancestors(tree, statement)):
        for expression in contexts_of(outer):
            if is_inference_mode(tree, expression):
                assert isinstance(outer, With | Function)
                return InferenceContext(tree, outer, expression)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def contexts_of(node: ast.AST) -> list[ast.expr]:
    """The contexts that a `with` enters or that decorate a function."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    return decorators_of(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []


def is_inference_mode(tree: SourceTree, expression: ast.expr) -> bool:
    """Whether an expression turns inference mode on."""
    if context_name(tree, expression) not in (_CONTEXT, "torch.autograd.grad_mode.inference_mode"):
        return False
    arguments = expression.args if isinstance(expression, ast.Call) else []
    return not any(isinstance(one, ast.Constant) and one.value is False for one in arguments)


def _only_context(crash: Crash) -> InferenceContext | None:
    """The first inference mode in the user's files, where nothing was recorded."""
    for tree in source_files(crash):
        for node in ast.walk(tree.root):
            for expression in contexts_of(node):
                if is_inference_mode(tree, expression):
                    assert isinstance(node, With | Function)
                    return InferenceContext(tree, node, expression)
    return None
