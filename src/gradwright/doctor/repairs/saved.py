"""Fixes that leave a write as it is: do it after the backward, or give backward its own copy."""

import ast

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.targets import Target
from gradwright.doctor.evidence.writes import SavedChange, shared_lines
from gradwright.doctor.syntax.changes import Edits
from gradwright.doctor.syntax.expressions import append_method
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.reorder import move_after
from gradwright.doctor.syntax.tree import tree_of
from gradwright.doctor.syntax.where import scope_of, sibling_around, statement_at


def moved_behind_backward(crash: Crash, facts: SavedChange) -> Edits | None:
    """Move the whole statement that changes the tensor behind the backward that needs it."""
    change = facts.change
    places = crash.journal.places
    if change is None:
        return None
    stacks = [places.stack(change.place), places.stack(facts.call.place)]
    lines = shared_lines(stacks)
    tree = tree_of(lines[0].file) if lines is not None else None
    if tree is None or lines is None or lines[0].line >= lines[1].line:
        return None
    writer, backward = (statement_at(tree, site.line) for site in lines)
    if writer is None or backward is None:
        return None
    outer = sibling_around(tree, backward, writer)
    return move_after(tree, outer, backward) if outer is not None else None


def copied_where_saved(crash: Crash, facts: SavedChange, target: Target) -> Edits | None:
    """Give the operation that saves the tensor a copy: `f(x)` becomes `f(x.clone())`."""
    tree, name = target.tree, dotted(target.written)
    last = (name or "").rpartition(".")[2]
    for site in crash.journal.stack_of_node(facts.modified.number):
        other = tree_of(site.file)
        statement = statement_at(other, site.line) if other is not None else None
        if other is None or statement is None or name is None:
            continue
        same = other is tree and scope_of(tree, statement) is scope_of(tree, target.statement)
        for node in ast.walk(statement):
            if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            text = dotted(node) or ""
            attribute = "." in name and text.rpartition(".")[2] == last and "." in text
            if (same and text == name) or attribute:
                return append_method(other, node, ".clone()")
    return None
