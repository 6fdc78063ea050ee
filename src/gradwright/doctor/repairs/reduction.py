"""Repairs of a loss with several elements."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_frame
from gradwright.doctor.syntax import (
    Edits,
    SourceTree,
    argument_of,
    call_at,
    keyword_of,
    remove_keyword,
    set_keyword,
    wrap_expression,
    wrap_value,
)

_STACKS = {"stack", "cat", "hstack", "vstack", "concatenate", "concat"}


def fixes_for_shape(cause: Line | None) -> tuple[Fix, ...]:
    """Reduce the value where it is computed."""
    tree, statement = (cause.tree, cause.statement) if cause is not None else (None, None)
    if cause is None or tree is None or statement is None:
        return (Fix("reduce the loss to one number: `.mean()`"),)
    unreduced = _unreduced_call(statement)
    if unreduced is not None:
        edits = remove_keyword(tree, unreduced, "reduction")
        return (Fix("let the loss function take the mean, as it does by default:", edits or ()),)
    method = "sum" if _is_stack(statement) else "mean"
    edits = _reduced(tree, cause, statement, method)
    other = "mean" if method == "sum" else "sum"
    fixes = [Fix(f"take the {method} of the elements:", edits or ())]
    second = _reduced(tree, cause, statement, other)
    if second:
        fixes.append(Fix(f"take the {other}, if that is what you meant:", second))
    return tuple(fixes)


def fixes_for_outputs(crash: Crash) -> tuple[Fix, ...]:
    """Differentiate the sum of the outputs."""
    frame = crash.raised_at
    line = line_of_frame(frame) if frame is not None else None
    tree = line.tree if line is not None else None
    call = (
        call_at(tree, line.site.line, {"grad"}) if tree is not None and line is not None else None
    )
    if tree is None or call is None:
        return (Fix("differentiate the sum of the outputs: `grad(outputs.sum(), …)`"),)
    outputs = argument_of(call, 0) or argument_of(call, "outputs")
    if outputs is None or isinstance(outputs, ast.Tuple | ast.List):
        return (Fix("differentiate the sum of the outputs: `grad(outputs.sum(), …)`"),)
    edits = wrap_expression(tree, outputs, "{}.sum()")
    text = tree.source(outputs)
    ones = set_keyword(tree, call, "grad_outputs", f"torch.ones_like({text})")
    return (
        Fix("differentiate the sum; each output depends on its own input:", edits or ()),
        Fix("say the same by weights of one:", ones or ()),
    )


def _unreduced_call(statement: ast.stmt) -> ast.Call | None:
    """The call with `reduction="none"` that is the statement's whole value."""
    value = getattr(statement, "value", None)
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr != "backward":
            break
        value = value.func.value
    if not isinstance(value, ast.Call):
        return None
    keyword = keyword_of(value, "reduction")
    if keyword is None or not isinstance(keyword.value, ast.Constant):
        return None
    return value if keyword.value.value == "none" else None


def _is_stack(statement: ast.stmt) -> bool:
    value = getattr(statement, "value", None)
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _STACKS


def _reduced(tree: SourceTree, cause: Line, statement: ast.stmt, method: str) -> Edits | None:
    template = f"{{}}.{method}()"
    receiver = _receiver(statement)
    if receiver is not None:
        return wrap_expression(tree, receiver, template)
    if isinstance(statement, ast.AugAssign) or (
        isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple)
    ):
        expression = cause.expression
        return None if expression is None else wrap_expression(tree, expression, template)
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Tuple | ast.Dict) and cause.expression is not None:
        return wrap_expression(tree, cause.expression, template)
    return wrap_value(tree, statement, template)


def _receiver(statement: ast.stmt) -> ast.expr | None:
    """`loss` of `loss.backward()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call.func.value if call.func.attr == "backward" else None
