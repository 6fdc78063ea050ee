"""A `requires_grad` flag that torch refused to set."""

import ast
from dataclasses import dataclass

from gradwright.diagnostic import Fix, Span
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.lines import line_of_frame
from gradwright.doctor.evidence.spans import span_of_frame
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.statements import replace_statement
from gradwright.doctor.syntax.tree import SourceTree


@dataclass(frozen=True, slots=True)
class RefusedFlag:
    """What to say about it."""

    span: Span
    label: str
    summary: str
    why: str
    fixes: tuple[Fix, ...]


def explain_flag(crash: Crash) -> RefusedFlag | None:
    """A result cannot have its flag changed."""
    frame = crash.raised_at
    if frame is None:
        return None
    if "you can only change requires_grad flags of leaf variables" in crash.message:
        return _of_result(frame)
    return None


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
    line = line_of_frame(frame)
    tree, statement = line.tree, line.statement
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
