"""Replace operations without a second derivative by forms that have one."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.evidence.function_class import FunctionClass, saved_names
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.evidence.second_derivative import SecondDerivative
from gradwright.doctor.syntax import (
    Edits,
    call_at,
    decorators_of,
    dotted,
    remove_decorator,
    set_keyword,
    wrap_in_with,
)

_MATH = "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)"
_NO_CUDNN = "torch.backends.cudnn.flags(enabled=False)"


def fixes_for_second_derivative(facts: SecondDerivative) -> tuple[Fix, ...]:
    """The repair for the operation, then first-order gradients for another intent."""
    first_order = Fix("drop `create_graph=True`, if first-order gradients are enough for you")
    own = _own(facts)
    return (own, first_order) if own is not None else (first_order,)


def _own(facts: SecondDerivative) -> Fix | None:
    line, operation = facts.forward, facts.operation
    if facts.function is not None:
        return _unmarked(facts.function)
    if line is None:
        return None
    if operation == "cdist":
        title = "let `cdist` compute with a matrix product, which can be differentiated twice:"
        return Fix(title, _with_mode(line) or ())
    if operation.startswith("scaled_dot_product"):
        return Fix(
            "use the plain attention kernel, which can be differentiated twice:",
            _inside(line, _MATH) or (),
        )
    if "cudnn_rnn" in operation:
        return Fix("run this network without cuDNN:", _inside(line, _NO_CUDNN) or ())
    return Fix(f"write `{operation}` with operations that can be differentiated twice")


def _with_mode(line: Line) -> Edits | None:
    tree = line.tree
    call = call_at(tree, line.site.line, {"cdist"}) if tree is not None else None
    if tree is None or call is None:
        return None
    return set_keyword(tree, call, "compute_mode", '"use_mm_for_euclid_dist"')


def _inside(line: Line, context: str) -> Edits | None:
    tree, statement = line.tree, line.statement
    if tree is None or statement is None:
        return None
    return wrap_in_with(tree, statement, statement, context)


def _unmarked(function: FunctionClass) -> Fix:
    """Take the mark off where `backward` reads only what double backward can see."""
    tree, backward = function.tree, function.source("backward")
    title = f"let `{function.name}.backward` be differentiated too:"
    if tree is None or backward is None or not reads_inputs_only(function):
        return Fix(
            f"write `{function.name}.backward` with torch operations on saved inputs, without "
            "`once_differentiable`"
        )
    marks = [dotted(one) or "" for one in decorators_of(backward)]
    for mark in marks:
        if mark.endswith("once_differentiable"):
            return Fix(
                title,
                remove_decorator(tree, backward, "torch.autograd.function.once_differentiable")
                or (),
            )
    return Fix(title)


def reads_inputs_only(function: FunctionClass) -> bool:
    """Whether `backward` works on saved inputs and outputs alone, in torch."""
    forward, backward = function.source("forward"), function.source("backward")
    if forward is None or backward is None:
        return False
    returned = {
        name
        for one in ast.walk(forward)
        if isinstance(one, ast.Return) and one.value is not None
        for name in _names(one.value)
    }
    saved = saved_names(forward)
    known = {*function.inputs, *returned}
    leaves_torch = any(
        isinstance(one, ast.Attribute) and one.attr in ("numpy", "item", "detach", "data", "tolist")
        for one in ast.walk(backward)
    )
    return bool(saved) and all(name in known for name in saved) and not leaves_torch


def _names(value: ast.expr) -> list[str]:
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    return [name for name in map(dotted, elements) if name]
