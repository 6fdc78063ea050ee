"""Repairs of a `grad` whose inputs are not all in the graph."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.lines import call_of_frame, line_of_frame
from gradwright.doctor.evidence.unused import Break, Unused
from gradwright.doctor.syntax import (
    Edits,
    SourceTree,
    argument_of,
    is_named,
    replace_expression,
    scope_of,
    set_keyword,
    strip_method,
    use_history,
)

_PARAMETER = {"Parameter"}


def fixes_for_unused(crash: Crash, unused: Unused) -> tuple[Fix, ...]:
    """Close the cut where there is one; else say what an unused input's gradient is."""
    zeros = Fix(
        "take zeros as the gradient of an unused input:", _asked(crash, "materialize_grads")
    )
    nones = Fix("take `None` as its gradient, and handle that:", _asked(crash, "allow_unused"))
    general = (nones,) if _only_allows(crash) else (zeros, nones)
    if _handles_none(crash):
        general = (nones, zeros)
    if unused.broken is not None:
        joined = _joined(unused.broken)
        if joined:
            return (Fix("keep the history of these tensors:", joined), *general[:1])
    if unused.renewed is not None:
        whole = _sliced_after(crash)
        own = Fix("differentiate the tensor that was used, and slice its gradient:", whole)
        plain = Fix("compute the outputs from the tensor that you ask for, or ask for the old one")
        return (own if whole else plain, *general[:1])
    return general


def _sliced_after(crash: Crash) -> Edits:
    """`grad(u, x[:, :1])[0]` to `grad(u, x)[0][:, :1]`."""
    found = _grad_call(crash)
    if found is None:
        return ()
    tree, call = found
    part, first = argument_of(call, 1) or argument_of(call, "inputs"), tree.parents[call]
    if not isinstance(part, ast.Subscript) or not isinstance(first, ast.Subscript):
        return ()
    if not isinstance(first.slice, ast.Constant) or first.slice.value != 0:
        return ()
    index = tree.text[tree.end(part.value) : tree.end(part)]
    before = tree.text[tree.start(call) : tree.end(part.value)]
    after = tree.text[tree.end(part) : tree.end(first)]
    return replace_expression(tree, first, before + after + index) or ()


def _joined(broken: Break) -> Edits | None:
    """Take away what cut: `nn.Parameter(...)`, `.detach()`, `.data`."""
    tree, statement = broken.line.tree, broken.line.statement
    if tree is None or statement is None:
        return None
    if broken.kind == "parameter":
        call = _call_of(tree, statement, _PARAMETER)
        inner = argument_of(call, 0) if call is not None else None
        return replace_expression(tree, call, tree.source(inner)) if call and inner else None
    if broken.kind == "detach" and isinstance(broken.line.expression, ast.Call):
        call = broken.line.expression
        return use_history(tree, call) or strip_method(tree, call, "detach")
    return None


def _call_of(tree: SourceTree, statement: ast.stmt, names: set[str]) -> ast.Call | None:
    calls = [one for one in ast.walk(statement) if isinstance(one, ast.Call)]
    found = [one for one in calls if is_named(tree, one.func, names)]
    return found[0] if len(found) == 1 else None


def _asked(crash: Crash, keyword: str) -> Edits:
    """The `grad` call, or the library's call around it, with the keyword."""
    found = _grad_call(crash)
    if found is None:
        return ()
    tree, call = found
    return set_keyword(tree, call, keyword, "True") or ()


def _grad_call(crash: Crash) -> tuple[SourceTree, ast.Call] | None:
    frame = crash.raised_at
    line = line_of_frame(frame) if frame is not None else None
    tree = line.tree if line is not None else None
    if frame is None or tree is None:
        return None
    call = call_of_frame(frame, {"grad"})
    if call is None and _only_allows(crash):
        expression = line.expression if line is not None else None
        call = expression if isinstance(expression, ast.Call) else None
    return None if call is None else (tree, call)


def _only_allows(crash: Crash) -> bool:
    """Whether a library calls `grad` for the user, and offers `allow_unused`."""
    library = _first_library_frame(crash)
    if library is None or library is crash.engine_frame:
        return False
    code = library.code
    return "allow_unused" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _first_library_frame(crash: Crash) -> CrashFrame | None:
    """The function that the user's innermost line called."""
    last = crash.raised_at
    after = False
    for frame in crash.frames:
        if after:
            return frame if frame is not crash.engine_frame else crash.engine_frame
        after = last is not None and frame.frame is last.frame
    return None


def _handles_none(crash: Crash) -> bool:
    """Whether the function compares something with None after the call."""
    found = _grad_call(crash)
    if found is None:
        return False
    tree, call = found
    compared = (one for one in ast.walk(scope_of(tree, call)) if isinstance(one, ast.Compare))
    return any(
        one.lineno >= call.lineno
        and isinstance(one.ops[0], ast.Is | ast.IsNot)
        and isinstance(one.comparators[0], ast.Constant)
        and one.comparators[0].value is None
        for one in compared
    )
