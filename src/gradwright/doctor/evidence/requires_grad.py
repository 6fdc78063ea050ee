"""A `requires_grad` flag that torch refused to set."""

import ast
from dataclasses import dataclass

from gradwright.diagnostic import Fix, Span
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.spans import span_of_frame
from gradwright.doctor.syntax.calls import keyword_of, set_keyword
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.expressions import wrap_expression
from gradwright.doctor.syntax.imports import torch_name
from gradwright.doctor.syntax.statements import replace_statement
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import call_at, statement_at

_MAKERS = {"tensor", "zeros", "ones", "full", "arange", "as_tensor", "randint", "empty", "eye"}


@dataclass(frozen=True, slots=True)
class RefusedFlag:
    """What to say about it."""

    span: Span
    label: str
    summary: str
    why: str
    fixes: tuple[Fix, ...]


def explain_flag(crash: Crash) -> RefusedFlag | None:
    """Integers cannot require grad, and a result cannot have its flag changed."""
    frame = crash.raised_at
    if frame is None:
        return None
    if "can require gradients" in crash.message and "floating point" in crash.message:
        return _of_integers(frame)
    if "you can only change requires_grad flags of leaf variables" in crash.message:
        return _of_result(frame)
    return None


def _of_integers(frame: CrashFrame) -> RefusedFlag:
    edits = _as_floats(frame)
    fixes = (Fix("make it a tensor of floating point numbers", edits),) if edits else ()
    return RefusedFlag(
        span_of_frame(frame),
        "gradients are asked for here, for integers",
        "an integer tensor cannot require grad",
        "A gradient is a limit of ever smaller changes; integers have none.",
        fixes,
    )


def _as_floats(frame: CrashFrame) -> Edits | None:
    tree = tree_of(frame.file)
    if tree is None:
        return None
    call = call_at(tree, frame.line, _MAKERS)
    if call is not None and keyword_of(call, "requires_grad") is not None:
        return set_keyword(tree, call, "dtype", f"{torch_name(tree) or 'torch'}.float32")
    flag = call_at(tree, frame.line, {"requires_grad_", "Parameter"})
    if flag is None:
        return None
    if isinstance(flag.func, ast.Attribute) and flag.func.attr == "requires_grad_":
        return wrap_expression(tree, flag.func.value, "{}.float()")
    return wrap_expression(tree, flag.args[0], "{}.float()") if flag.args else None


def _of_result(frame: CrashFrame) -> RefusedFlag:
    edits = _detached(frame)
    fixes = (Fix("stop the gradient with a detached tensor", edits),) if edits else ()
    return RefusedFlag(
        span_of_frame(frame),
        "the flag of a computed tensor is changed here",
        "`requires_grad` of a computed tensor cannot be changed",
        "Only leaves carry the flag; a result requires grad because its inputs do. To stop the "
        "gradient there, take a detached tensor.",
        fixes,
    )


def _detached(frame: CrashFrame) -> Edits | None:
    """`x.requires_grad = False` and `x.requires_grad_(False)` become `x = x.detach()`."""
    tree = tree_of(frame.file)
    statement = statement_at(tree, frame.line) if tree is not None else None
    if tree is None or statement is None:
        return None
    owner = _owner(statement)
    return _replaced(tree, statement, owner) if owner is not None else None


def _owner(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        return statement.targets[0].value if statement.targets[0].attr == "requires_grad" else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return call.func.value if call.func.attr == "requires_grad_" else None
    return None


def _replaced(tree: SourceTree, statement: ast.stmt, owner: ast.expr) -> Edits | None:
    name = tree.source(owner)
    return replace_statement(tree, statement, f"{name} = {name}.detach()")
