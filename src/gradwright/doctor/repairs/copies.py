"""Fixes for a tensor that is copied with its graph: store, or hand over, its values only."""

import ast
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.copies import GraphCopy, Store, is_read_elsewhere
from gradwright.doctor.evidence.lines import line_of_frame
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.evidence.values import tensor_in_frame
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.expressions import wrap_expression
from gradwright.doctor.syntax.parametrizations import use_parametrization
from gradwright.doctor.syntax.statements import insert_before
from gradwright.doctor.syntax.where import enclosing


def fixes_for_store(crash: Crash, copy: GraphCopy, store: Store | None) -> tuple[Fix, ...]:
    """Store the values without the graph, or empty the place before the copy."""
    name = copy.holder.attribute if copy.holder is not None else ""
    detach = Fix("store the values without their graph", _detached(store) or ())
    hooked = _parametrized(crash, copy)
    if hooked:
        return (Fix("use the parametrization of that name, whose module can be copied", hooked),)
    clear = Fix("empty the place before the copy", _cleared(crash, copy) or ())
    wanted = store is not None and bool(name) and is_read_elsewhere(crash, store, name)
    order = (clear, detach) if wanted else (detach, clear)
    return tuple(fix for fix in order if fix.edits)


def _parametrized(crash: Crash, copy: GraphCopy) -> Edits | None:
    """`torch.nn.utils.weight_norm` keeps a computed weight; its successor does not."""
    owner = copy.holder.owner if copy.holder is not None else None
    hooks = owner._forward_pre_hooks.values() if is_a(owner, torch.nn.Module) else ()
    names = {type(hook).__module__.rpartition(".")[2] for hook in hooks}
    for tree in source_files(crash):
        for name in sorted(names & {"weight_norm", "spectral_norm"}):
            edits = use_parametrization(tree, name)
            if edits:
                return edits
    return None


def _detached(store: Store | None) -> Edits | None:
    return wrap_expression(store.tree, store.value, "{}.detach()") if store is not None else None


def _cleared(crash: Crash, copy: GraphCopy) -> Edits | None:
    """`model.hidden = None` in front of the line that copies."""
    holder, frame = copy.holder, crash.raised_at
    if holder is None or frame is None or holder.kind != "attribute":
        return None
    if holder.frame.code is not frame.code or type(holder.owner).__module__.startswith("torch."):
        return None
    line = line_of_frame(frame)
    tree, statement = line.tree, line.statement
    if tree is None or statement is None:
        return None
    return insert_before(tree, statement, [f"{holder.path} = None"])


def fixes_for_numpy(crash: Crash, copy: GraphCopy) -> tuple[Fix, ...]:
    """Hand numpy the values only."""
    frame = crash.raised_at
    edits = next((edits for edits in _arrays(frame, copy) if edits), None) if frame else None
    return (Fix("hand over the values without their graph", edits),) if edits else ()


def _arrays(frame: CrashFrame, copy: GraphCopy) -> Iterator[Edits | None]:
    line = line_of_frame(frame)
    tree, statement = line.tree, line.statement
    if tree is None or statement is None:
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr in ("numpy", "__array__"):
            tensor = tensor_in_frame(frame, node.value)
            if tensor is None or tensor.requires_grad:
                yield wrap_expression(tree, node.value, "{}.detach()")
    for node in ast.walk(statement):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            continue
        tensor = tensor_in_frame(frame, node)
        if tensor is not None and (tensor is copy.tensor or tensor.requires_grad):
            call = enclosing(tree, node, ast.Call)
            if call is not None and node in call.args:
                yield wrap_expression(tree, node, "{}.detach()")
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Call):
            yield wrap_expression(tree, node.args[0], "{}.detach()")
