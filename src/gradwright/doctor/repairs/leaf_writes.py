"""Fixes for a write that torch refuses: turn recording off around it, or write into a copy."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Fix
from gradwright.doctor.evidence.leaf_writes import RefusedWrite, is_frozen_write, writes_a_result
from gradwright.doctor.evidence.targets import Target, function_around, target_of_statement
from gradwright.doctor.syntax.calls import keyword_of, remove_keyword
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.contexts import wrap_in_with
from gradwright.doctor.syntax.decorators import insert_decorator
from gradwright.doctor.syntax.inplace import out_of_place
from gradwright.doctor.syntax.names import assigned_names, assignments_to, dotted
from gradwright.doctor.syntax.statements import insert_before
from gradwright.doctor.syntax.where import ancestors, block_of, scope_of


def fixes_for_refused_write(refused: RefusedWrite) -> tuple[Fix, ...]:
    """The fitting fixes, at most two."""
    target = refused.target
    if target is None:
        return ()
    found: dict[Edits, Fix] = {}
    for title, edits in _ways(refused, target):
        if edits:
            found.setdefault(edits, Fix(title, edits))
    return tuple(found.values())[:2]


def _ways(refused: RefusedWrite, target: Target) -> Iterator[tuple[str, Edits | None]]:
    name = target.name
    update = "change the values without recording"
    if refused.kind == "one of several views":
        yield f"write into a copy of `{name}`", _copied(target)
        yield f"make a new tensor instead of changing `{name}`", _out_of_place(target)
        return
    if writes_a_result(refused):
        yield f"make `{name}` a plain tensor, so that it can take the result", _not_a_leaf(target)
        yield f"write into a copy of `{name}`", _copied(target)
    else:
        yield update, _whole_step(target) or _without_recording(refused, target)
        yield f"make `{name}` a plain tensor, if it is not meant to train", _not_a_leaf(target)


def _whole_step(target: Target) -> Edits | None:
    """`@torch.no_grad()` on the `step` of an optimizer that calls no closure."""
    function = function_around(target)
    if function is None or function.name != "step":
        return None
    owner = target.tree.parents.get(function)
    bases = [dotted(base) or "" for base in owner.bases] if isinstance(owner, ast.ClassDef) else []
    called = {dotted(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    if not any(base.endswith("Optimizer") for base in bases) or "closure" in called:
        return None
    return insert_decorator(target.tree, function, "torch.no_grad()")


def _without_recording(refused: RefusedWrite, target: Target) -> Edits | None:
    """`with torch.no_grad():` around this write and those that follow it at once."""
    block, index = block_of(target.tree, target.statement)
    last = index
    for position in range(index + 1, len(block)):
        if _is_similar(refused, target, block[position]):
            last = position
        elif not _is_between(block[position]):
            break
    header = "torch.no_grad()"
    return wrap_in_with(target.tree, block[index], block[last], header)


def _is_similar(refused: RefusedWrite, target: Target, statement: ast.stmt) -> bool:
    """Whether a later statement is refused for the same reason."""
    if isinstance(statement, ast.If | ast.For):
        inner = [one for one in ast.walk(statement) if isinstance(one, ast.stmt)]
        parts = [one for one in inner if one is not statement]
        return bool(parts) and all(_is_similar(refused, target, one) for one in parts)
    other = target_of_statement(target.tree, statement)
    if other is None:
        return False
    return other.name == target.name or is_frozen_write(refused.frame, other)


def _is_between(statement: ast.stmt) -> bool:
    """Whether a statement may go along: `x.grad = None`, `x.grad.zero_()`, a print."""
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(one, ast.Attribute) and one.attr == "grad" for one in statement.targets
        )
    called = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(called, ast.Call) and dotted(called.func) == "print"


def _not_a_leaf(target: Target) -> Edits | None:
    """Remove `requires_grad=True` where the variable is made."""
    name = dotted(target.written)
    if name is None:
        return None
    made = assignments_to(scope_of(target.tree, target.statement), name)
    for statement in made:
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.Call) and keyword_of(value, "requires_grad") is not None:
            return remove_keyword(target.tree, value, "requires_grad")
    return None


def _copied(target: Target) -> Edits | None:
    """`x = x.clone()` before the first write, outside a loop over the views' elements."""
    tree, name = target.tree, dotted(target.written)
    if name is None:
        return None
    for outer in ancestors(tree, target.statement):
        if isinstance(outer, ast.For) and name in assigned_names(outer):
            return insert_before(tree, target.statement, [f"{name} = {name}.clone()"])
    if isinstance(target.operation, ast.AugAssign) and isinstance(
        target.operation.target, ast.Name
    ):
        return _out_of_place(target)
    return insert_before(tree, target.statement, [f"{name} = {name}.clone()"])


def _out_of_place(target: Target) -> Edits | None:
    return out_of_place(target.tree, target.operation)
