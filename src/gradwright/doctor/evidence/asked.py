"""How the program asked for the backward that failed, and what it calls the loss."""

import ast

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import call_of_frame, line_of_operation
from gradwright.doctor.evidence.spans import span_of_frame
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of

_ASKS = ("backward", "manual_backward", "grad")


def asking_call(crash: Crash) -> tuple[SourceTree, ast.Call] | None:
    """The user's call of `backward` or `grad`; None where a library calls it."""
    frame = crash.raised_at
    tree = tree_of(frame.file) if frame is not None else None
    if frame is None or tree is None:
        return None
    call = call_of_frame(frame, _ASKS)
    return None if call is None else (tree, call)


def asked_at(crash: Crash) -> Span | None:
    """The line that asked for it, as a span."""
    frame = crash.raised_at
    return span_of_frame(frame) if frame is not None else None


def loss_name(crash: Crash) -> str:
    """The loss in the user's words: `loss`, `e.sum()`; empty where a library holds it."""
    found = asking_call(crash)
    if found is None:
        return _assigned_by_operation(crash)
    tree, call = found
    assert isinstance(call.func, ast.Attribute | ast.Name)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
    if named and receiver is not None and dotted(receiver) not in ("torch.autograd", "autograd"):
        return _short(tree.source(receiver))
    return _short(tree.source(call.args[0])) if call.args else ""


def _assigned_by_operation(crash: Crash) -> str:
    """The variable that the last recorded line of the loss assigns."""
    roots = crash.roots()
    made = crash.journal.operations.of(roots[0]) if roots else None
    line = line_of_operation(crash.journal, made) if made is not None else None
    statement = line.statement if line is not None else None
    if statement is None or not isinstance(statement, ast.Assign):
        return ""
    names = assigned_names(statement)
    return names[0] if len(names) == 1 else ""


def said_loss(crash: Crash) -> str:
    """The loss in backticks, or plain words."""
    name = loss_name(crash)
    return f"`{name}`" if name else "the loss"


def _short(text: str) -> str:
    return text if len(text) <= 40 and "\n" not in text else ""
