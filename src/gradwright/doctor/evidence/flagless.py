"""Tensors that a program differentiates by, or trains, although they do not require grad."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asking_call
from gradwright.doctor.evidence.severed import Severance, find_severance
from gradwright.doctor.evidence.wanted import wanted_tensors
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.syntax.calls import argument_of
from gradwright.doctor.syntax.names import assigned_names, dotted, reads_in
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    Function,
    function_at,
    span_of,
    statement_at,
)


@dataclass(frozen=True, slots=True)
class Flagless:
    """One such tensor and the statement that made it, or first reads it."""

    name: str
    tree: SourceTree
    statement: ast.stmt
    made: bool  # the statement assigns the name; else it is the first that reads it
    rebound: bool  # an update put a new tensor in the place of one that required grad

    @property
    def span(self) -> Span:
        """The statement, or the header line of a long one."""
        span = span_of(self.tree, self.statement)
        long = span.end_line is not None and span.end_line - span.line > 3
        return Span(span.file, span.line) if long else span


def find_flagless(crash: Crash) -> Flagless | None:
    """The tensor that lacks the flag, by what the program asked for."""
    severance = crash.once(find_severance)
    if severance is not None:
        updated = _updated(crash, severance)
        if updated is not None:
            return updated
    if severance is not None and (severance.cuts or severance.passage is not None):
        return None
    return _differentiated_by(crash) or _trained(crash)


def _updated(crash: Crash, severance: Severance) -> Flagless | None:
    """`w = w - rate * w.grad`: the cut operation reads a leaf and takes its name."""
    for cut in severance.cuts:
        stack = crash.journal.places.stack(cut.place)
        tree = tree_of(stack[0].file) if stack else None
        statement = statement_at(tree, stack[0].line) if tree is not None else None
        if tree is None or not isinstance(statement, ast.Assign):
            continue
        reads = reads_in(statement.value)
        names = [name for name in assigned_names(statement) if _reads(reads, name)]
        if len(names) == 1 and _from_leaf(crash, cut):
            return Flagless(names[0], tree, statement, made=True, rebound=True)
    return None


def _reads(reads: set[str], name: str) -> bool:
    return name in reads or any(one.startswith(f"{name}.") for one in reads)


def _from_leaf(crash: Crash, cut: Operation) -> bool:
    """Whether a leaf that required grad is an input of the cut itself."""
    operations = crash.journal.operations
    parents = [operations[index] for index in cut.parents]
    for parent in list(parents):  # `(w - rate * g).detach()`: the same line, one step further
        if parent is not None and parent.place == cut.place:
            parents += [operations[index] for index in parent.parents]
    return any(one is not None and one.requires_grad and _is_leaf(one) for one in parents)


def _is_leaf(operation: Operation) -> bool:
    made_with_flag = not operation.parents and operation.requires_grad
    return operation.source in ("leaf", "parameter") or made_with_flag


def _differentiated_by(crash: Crash) -> Flagless | None:
    """An input of `torch.autograd.grad`."""
    inputs = crash.engine_inputs()
    index = next((i for i, tensor in enumerate(inputs) if not tensor.requires_grad), None)
    found, frame = asking_call(crash), crash.raised_at
    if index is None or found is None or frame is None:
        return None
    call = found[1]
    given = argument_of(call, "inputs") or argument_of(call, 1)
    if isinstance(given, ast.Tuple | ast.List) and index < len(given.elts):
        given = given.elts[index]
    name = dotted(given) if given is not None else None
    if name is None:
        return None
    return _located(crash, name, inputs[index], frame.site)


def _trained(crash: Crash) -> Flagless | None:
    """A plain tensor in the optimizer."""
    lacking = [one for one in wanted_tensors(crash) if not one.requires_grad]
    plain = [one for one in lacking if not isinstance(one, torch.nn.Parameter)]
    if not plain or crash.once(find_severance) is None:
        return None
    for frame in reversed(crash.user_frames):
        for name, value in frame.frame.f_locals.items():
            if value is plain[0]:
                return _located(crash, name, plain[0], frame.site)
    return None


def _located(crash: Crash, name: str, tensor: torch.Tensor, site: Site) -> Flagless | None:
    """The last assignment before the line, or the first statement of the function that reads it."""
    made = crash.journal.operations.of(tensor)
    stack = crash.journal.places.stack(made.place) if made is not None else ()
    for place in stack:
        tree = tree_of(place.file)
        statement = statement_at(tree, place.line) if tree is not None else None
        if tree is None or statement is None or place.code is not site.code:
            continue
        if name in assigned_names(statement):
            return Flagless(name, tree, statement, made=True, rebound=False)
    tree = tree_of(site.file)
    return _in_source(tree, name, site) if tree is not None else None


def _in_source(tree: SourceTree, name: str, site: Site) -> Flagless | None:
    function = function_at(tree, site.line)
    body: Sequence[ast.stmt] = function.body if function is not None else tree.root.body
    before = [one for one in _statements(function, tree) if one.lineno < site.line]
    assigned = [one for one in before if name in assigned_names(one)]
    if assigned and not isinstance(assigned[-1], ast.For | ast.AsyncFor | ast.With):
        return Flagless(name, tree, assigned[-1], made=True, rebound=False)
    if assigned or function is None:
        return None
    reading = [one for one in body if name in reads_in(one) or _reads(reads_in(one), name)]
    return Flagless(name, tree, reading[0], made=False, rebound=False) if reading else None


def _statements(function: Function | None, tree: SourceTree) -> list[ast.stmt]:
    scope: ast.AST = function if function is not None else tree.root
    found = [node for node in ast.walk(scope) if isinstance(node, ast.stmt)]
    return sorted(found, key=lambda node: node.lineno)
