"""Repairs of a checkpoint that computes something else the second time."""

import ast

from gradwright.diagnostic import Fix
from gradwright.doctor.evidence.checkpointed import Recomputation, calls_checkpoint
from gradwright.doctor.evidence.divergence import Branch, StateWrite, parameters_of
from gradwright.doctor.syntax import Edits, Function, function_at, replace_argument, tree_of
from gradwright.doctor.syntax.checkpoints import call_directly, draw_with_torch


def fixes_for_recomputation(
    facts: Recomputation, branch: Branch | None, write: StateWrite | None
) -> tuple[Fix, ...]:
    """The repair of the cause where one can be argued, then the block without checkpointing."""
    fixes: list[Fix] = []
    if branch is not None and branch.chance is not None:
        edits = draw_with_torch(branch.tree, branch.chance)
        if edits:
            fixes.append(Fix("draw from torch's generator, which checkpointing restores:", edits))
    if write is not None and (branch is None or branch.chance is None):
        edits = _without_argument(facts, write)
        if edits:
            fixes.append(Fix(f"do not pass what `{facts.name}` changes:", edits))
    fixes.append(Fix(f"run `{facts.name}` without checkpointing:", _directly(facts) or ()))
    return tuple(fixes)


def _directly(facts: Recomputation) -> Edits | None:
    tree = facts.call.tree if facts.call is not None else None
    call = calls_checkpoint(facts.call.site) if facts.call is not None else None
    return call_directly(tree, call) if tree is not None and call is not None else None


def _without_argument(facts: Recomputation, write: StateWrite) -> Edits | None:
    """`None` for the argument that is changed, if the block asks whether it is None."""
    tree = facts.call.tree if facts.call is not None else None
    call = calls_checkpoint(facts.call.site) if facts.call is not None else None
    entry = _entry(facts)
    if tree is None or call is None or entry is None:
        return None
    names = [name for name in parameters_of(entry) if name != "self"]
    for index, name in enumerate(names):
        if _is_changed(facts, write, entry, index, name) and _asks_for_none(entry, name):
            return replace_argument(tree, call, index + 1, "None")
    return None


def _entry(facts: Recomputation) -> Function | None:
    tree = tree_of(facts.entry.co_filename) if facts.entry is not None else None
    if tree is None or facts.entry is None:
        return None
    return function_at(tree, facts.entry.co_firstlineno)


def _is_changed(
    facts: Recomputation, write: StateWrite, entry: Function, index: int, name: str
) -> bool:
    """Whether the argument is what the statement writes into."""
    if write.function is entry:
        return write.target.partition(".")[0] == name
    value = facts.arguments[index] if index < len(facts.arguments) else None
    return bool(write.owner) and type(value).__name__ == write.owner


def _asks_for_none(entry: Function, name: str) -> bool:
    return any(
        isinstance(one, ast.Compare)
        and isinstance(one.left, ast.Name)
        and one.left.id == name
        and isinstance(one.comparators[0], ast.Constant)
        and one.comparators[0].value is None
        for one in ast.walk(entry)
    )
