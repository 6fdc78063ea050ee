"""Convert the odd tensor where it is made, else where it is used."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.evidence.mismatch import Mismatch
from gradwright.doctor.evidence.values import tensor_in_frame
from gradwright.doctor.syntax import (
    Edits,
    SourceTree,
    append_method,
    keyword_of,
    qualified_name,
    replace_expression,
    set_keyword,
    torch_name,
)

_METHODS = {
    "torch.float32": "float",
    "torch.float64": "double",
    "torch.float16": "half",
    "torch.bfloat16": "bfloat16",
    "torch.int64": "long",
}
_FRACTIONS = {"rand", "randn", "normal", "linspace", "logspace"}  # make no whole numbers
_FACTORIES = {"tensor", "as_tensor", "asarray", "zeros", "ones", "full", "empty", "rand", "randn"}
_FACTORIES |= {"arange", "linspace", "eye", "logspace"}


def fixes_for_dtype(crash: Crash, facts: Mismatch) -> tuple[Fix, ...]:
    """Make it the wanted type at its source; else in the failing line."""
    kind = facts.wanted.removeprefix("torch.")
    source = _at_source(facts)
    use = _at_use(crash, facts, f".{conversion(facts.wanted)}")
    fixes = [Fix(f"make it {kind} where it enters:", source)] if source else []
    if use:
        fixes.append(Fix(f"make it {kind} where it is used:", use))
    return tuple(fixes) or (Fix(f"convert it to {kind}"),)


def fixes_for_device(crash: Crash, facts: Mismatch) -> tuple[Fix, ...]:
    """Move it to where the others are."""
    other = _other_tensor(crash, facts)
    if other:
        use = _at_use(crash, facts, f".to({other}.device)")
        if use:
            return (Fix(f"move it to the device of `{other}`:", use),)
    return (Fix(f"move it to {facts.wanted}: `.to(device)`"),)


def _at_source(facts: Mismatch) -> Edits | None:
    if facts.origin is not None:
        return append_method(*facts.origin, f".{conversion(facts.wanted)}")
    line, operation = facts.made, facts.source
    if line is None or operation is None or operation.source:
        return None
    return made_as(line, facts.wanted)


def made_as(line: Line, wanted: str) -> Edits | None:
    """The expression that makes a tensor, making it of another type."""
    tree, expression = line.tree, line.expression
    if tree is None or expression is None:
        return None
    if isinstance(expression, ast.Call):
        edits = _in_call(tree, expression, wanted)
        if edits:
            return edits
    return append_method(tree, expression, f".{conversion(wanted)}")


def conversion(wanted: str) -> str:
    """The method that converts to a type, `float()` or `to(torch.int32)`."""
    return f"{_METHODS[wanted]}()" if wanted in _METHODS else f"to({wanted})"


def _in_call(tree: SourceTree, call: ast.Call, wanted: str) -> Edits | None:
    """`x.double()` to `x.float()`; `dtype=` of a factory."""
    function = qualified_name(tree, call.func) or ""
    module = torch_name(tree)
    text = wanted.replace("torch", module, 1) if module else wanted
    known = _FACTORIES - _FRACTIONS if "int" in wanted else _FACTORIES
    named = function.startswith("torch.") and function.removeprefix("torch.") in known
    if keyword_of(call, "dtype") is not None or (named and module):
        return set_keyword(tree, call, "dtype", text)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS.values():
        owner = tree.source(call.func.value)
        return replace_expression(tree, call, f"{owner}.{conversion(wanted)}")
    return None


def _at_use(crash: Crash, facts: Mismatch, method: str) -> Edits | None:
    found = _expression(crash, facts.used, facts.odd)
    if found is None:
        found = _expression(crash, facts.made, facts.odd)
    if found is None:
        return None
    tree, expression = found
    return append_method(tree, expression, method)


def _expression(
    crash: Crash, line: Line | None, tensor: object
) -> tuple[SourceTree, ast.expr] | None:
    """Where the failing line reads the tensor."""
    frame = crash.raised_at
    tree, statement = (line.tree, line.statement) if line is not None else (None, None)
    if frame is None or tree is None or statement is None or tensor is None:
        return None
    for one in ast.walk(statement):
        read = isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load)
        if read and isinstance(one, ast.expr) and tensor_in_frame(frame, one) is tensor:
            return tree, one
    return None


def _other_tensor(crash: Crash, facts: Mismatch) -> str:
    """A variable of the failing line that lies where the odd tensor should."""
    frame, line = crash.raised_at, facts.used
    statement = line.statement if line is not None else None
    if frame is None or statement is None:
        return ""
    for one in ast.walk(statement):
        if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load):
            tensor = tensor_in_frame(frame, one)
            if tensor is not None and str(tensor.device) == facts.wanted:
                return ast.unparse(one)
    return ""
