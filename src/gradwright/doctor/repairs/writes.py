"""Fixes for a write into a tensor that backward needs: write elsewhere, or save elsewhere."""

import ast
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.evidence.targets import (
    Target,
    function_around,
    is_call_of_method,
    target_of_write,
)
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.evidence.writes import Modified, SavedChange, change_of
from gradwright.doctor.journal import Write
from gradwright.doctor.journal.operations import storage_of
from gradwright.doctor.repairs.saved import copied_where_saved, moved_behind_backward
from gradwright.doctor.syntax.calls import keyword_of, set_keyword
from gradwright.doctor.syntax.changes import Edits, combine
from gradwright.doctor.syntax.inplace import out_of_place
from gradwright.doctor.syntax.names import assigned_names, dotted, reads_of
from gradwright.doctor.syntax.statements import insert_after, insert_before, replace_statement
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import statement_at

_VIEWS = {"view", "reshape", "squeeze", "unsqueeze", "transpose", "permute", "narrow", "select"}
_VIEWS |= {"chunk", "split", "unbind", "diagonal", "expand", "expand_as", "view_as", "t", "flatten"}


def fixes_for_write(crash: Crash, facts: SavedChange) -> tuple[Fix, ...]:
    """Fixes that can be written, the most fitting first; at most two."""
    found: list[Fix] = []
    for title, edits in _ways(crash, facts):
        if edits and all(edits != fix.edits for fix in found):
            found.append(Fix(title, edits))
    return tuple(found[:2])


def fixes_for_target(target: Target) -> tuple[Fix, ...]:
    """The same where only the source is known, not the write."""
    edits = out_of_place(target.tree, target.operation)
    title = f"make a new tensor instead of changing `{target.name}`"
    return (Fix(title, edits),) if edits else ()


def _ways(crash: Crash, facts: SavedChange) -> Iterator[tuple[str, Edits | None]]:
    target = _target_of(crash, facts.modified)
    if target is None:
        return
    name = target.name
    if not _is_kept(crash, facts.modified):
        yield f"make a new tensor instead of changing `{name}`", _all_out_of_place(crash, facts)
        yield f"hand the new `{name}` back to the caller", _returned(crash, facts.modified, target)
    else:
        yield "change it after the backward", moved_behind_backward(crash, facts)
    yield f"let backward keep its own copy of `{name}`", copied_where_saved(crash, facts, target)


def _target_of(crash: Crash, modified: Modified) -> Target | None:
    write = _write_of(crash, modified)
    return target_of_write(crash.journal, write) if write is not None else None


def _write_of(crash: Crash, modified: Modified) -> Write | None:
    change = change_of(crash.journal, modified)
    return change.write if change is not None else None


def _is_kept(crash: Crash, modified: Modified) -> bool:
    """Whether it is the memory of a parameter or buffer, which a new tensor would not replace."""
    kept = {storage_of(tensor) for tensor in _registered(crash)}
    return modified.storage in kept


def _registered(crash: Crash) -> Iterator[torch.Tensor]:
    for _, module in modules_in_sight(crash):
        yield from module.parameters()
        yield from module.buffers()


# -- a new tensor -------------------------------------------------------------------------------


def _all_out_of_place(crash: Crash, facts: SavedChange) -> Edits | None:
    """Rewrite every write that some node of this graph suffers from."""
    done: dict[SourceTree, dict[int, Edits]] = {}
    for modified in (facts.modified, *facts.others):
        write = _write_of(crash, modified)
        target = target_of_write(crash.journal, write) if write is not None else None
        if target is None or write is None:
            continue
        tree, line = target.tree, target.operation.lineno
        if line in done.get(tree, {}):
            continue
        edits = _new_tensor(crash, target, write)
        if edits is None:
            if modified is facts.modified:
                return None
            continue
        place = tree_of(edits[0].file) or tree
        done.setdefault(place, {})[line] = edits
    joined = [combine(tree, *edits.values()) for tree, edits in done.items()]
    return tuple(edit for edits in joined for edit in edits or ()) or None


def _new_tensor(crash: Crash, target: Target, write: Write) -> Edits | None:
    if _is_layer_call(target):
        return _layer_not_in_place(crash, target)
    if not _rebinding_suffices(target):
        return None
    base = _viewed_name(target)
    if base is not None:
        return insert_before(target.tree, base[1], [f"{base[0]} = {base[0]}.clone()"])
    sequence = isinstance(target.operation, ast.AugAssign) and not _stored_back(crash, write)
    return out_of_place(
        target.tree, target.operation, boolean_mask=_is_mask(target), sequence=sequence
    )


def _is_layer_call(target: Target) -> bool:
    """Whether a layer made with `inplace=True` is called: `self.relu(x)`."""
    operation = target.operation
    if not isinstance(operation, ast.Call) or is_call_of_method(target):
        return False
    return keyword_of(operation, "out") is None and keyword_of(operation, "inplace") is None


def _layer_not_in_place(crash: Crash, target: Target) -> Edits | None:
    """Turn `inplace=True` off where the layers of that file or its models are made."""
    for tree in dict.fromkeys([target.tree, *source_files(crash)]):
        calls = [
            node
            for node in ast.walk(tree.root)
            if isinstance(node, ast.Call) and _asks_in_place(node)
        ]
        if calls:
            return combine(tree, *(set_keyword(tree, call, "inplace", "False") for call in calls))
    return None


def _asks_in_place(call: ast.Call) -> bool:
    keyword = keyword_of(call, "inplace")
    value = keyword.value if keyword is not None else None
    return isinstance(value, ast.Constant) and value.value is True


def _rebinding_suffices(target: Target) -> bool:
    """Whether giving the variable a new tensor reaches everybody who should see the change."""
    if not isinstance(target.written, ast.Name):
        return dotted(target.written) is not None
    if isinstance(target.statement, ast.Assign | ast.Return) and is_call_of_method(target):
        return True  # `y = x.add_(e)`: the result is what is used
    function = function_around(target)
    scope: ast.AST = function if function is not None else target.tree.root
    name, end = target.written.id, target.tree.end(target.statement)
    loops = [node for node in ast.walk(scope) if isinstance(node, ast.For | ast.AsyncFor)]
    inside = [loop for loop in loops if _within(target.tree, target.statement, loop)]
    if any(name in assigned_names(loop) for loop in inside):
        return False
    reads = [read for read in reads_of(scope, name) if target.tree.start(read) >= end]
    again = any(
        _within(target.tree, read, loop) for loop in inside for read in reads_of(scope, name)
    )
    arguments = function is not None and name in {one.arg for one in function.args.args}
    return bool(reads) or (again and not arguments) or function is None


def _within(tree: SourceTree, inner: ast.expr | ast.stmt, outer: ast.stmt) -> bool:
    return tree.start(outer) <= tree.start(inner) and tree.end(inner) <= tree.end(outer)


def _viewed_name(target: Target) -> tuple[str, ast.stmt] | None:
    """`x` and the statement `v = x[0]` or `v = x.view(…)`, if `v` is written and `x` read after."""
    if not isinstance(target.written, ast.Name):
        return None
    tree, scope = target.tree, function_around(target) or target.tree.root
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign) or target.written.id not in assigned_names(node):
            continue
        base = _base_of_view(node.value)
        if (
            base is None
            or base == target.written.id
            or tree.end(node) > tree.start(target.statement)
        ):
            continue
        if any(tree.start(read) > tree.end(target.statement) for read in reads_of(scope, base)):
            return base, node
    return None


def _base_of_view(value: ast.expr) -> str | None:
    if isinstance(value, ast.Subscript):
        return dotted(value.value)
    if isinstance(value, ast.Attribute) and value.attr in ("T", "mT"):
        return dotted(value.value)
    called = value.func if isinstance(value, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr in _VIEWS:
        return dotted(called.value)
    return None


def _stored_back(crash: Crash, write: Write) -> bool:
    """Whether `x[i] += e` wrote into a tensor `x`: then Python stored the element back into it."""
    writes = crash.journal.operations.writes
    return any(
        other.name == "__setitem__" and other.place == write.place and other.node >= write.node
        for other in writes
    )


def _is_mask(target: Target) -> bool:
    """Whether the index is a comparison, so a boolean mask."""
    statement = target.statement
    place = statement.targets[0] if isinstance(statement, ast.Assign) else None
    index = place.slice if isinstance(place, ast.Subscript) else None
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        index = index.operand
    return isinstance(index, ast.Compare)


# -- a new tensor for the caller ----------------------------------------------------------------


def _returned(crash: Crash, modified: Modified, target: Target) -> Edits | None:
    """`def f(x): x.mul_(2)`, called as `f(y)`: return the new tensor and bind it: `y = f(y)`."""
    write, function = _write_of(crash, modified), function_around(target)
    if write is None or function is None or not isinstance(target.written, ast.Name):
        return None
    stack = crash.journal.places.stack(write.place)
    names = [one.arg for one in function.args.args]
    if len(stack) < 2 or target.written.id not in names or function.body[-1] != target.statement:
        return None
    caller = tree_of(stack[1].file)
    statement = statement_at(caller, stack[1].line) if caller is not None else None
    if caller is None or not isinstance(statement, ast.Expr):
        return None
    call, position = statement.value, names.index(target.written.id)
    if names[0] in ("self", "cls"):
        position -= 1
    if not isinstance(call, ast.Call) or not 0 <= position < len(call.args):
        return None
    argument = call.args[position]
    tree, name = target.tree, target.written.id
    returned = insert_after(tree, target.statement, [f"return {name}"])
    inside = combine(tree, out_of_place(tree, target.operation), returned)
    text = f"{caller.source(argument)} = {caller.source(call)}"
    outside = replace_statement(caller, statement, text) if dotted(argument) else None
    if inside is None or outside is None:
        return None
    return combine(caller, inside, outside) if caller is target.tree else (*inside, *outside)
