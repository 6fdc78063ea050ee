"""Fixes for a tensor that lacks `requires_grad`."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.evidence.flagless import Flagless
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.names import dotted, reads_of
from gradwright.doctor.syntax.statements import insert_after, insert_before, replace_statement
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import WITHS, enclosing, scope_of

Edits = tuple[Edit, ...]
_IN_PLACE = {ast.Sub: "-=", ast.Add: "+=", ast.Mult: "*=", ast.Div: "/="}


def fixes_for_flagless(facts: Flagless) -> tuple[Fix, ...]:
    """Set the flag where the tensor is made, or update it in place."""
    found = tuple(Fix(title, edits) for title, edits in _ways(facts) if edits)
    return found or (Fix(f"call `{facts.name}.requires_grad_(True)` before its first use"),)


def _ways(facts: Flagless) -> Iterator[tuple[str, Edits | None]]:
    tree, statement = facts.tree, facts.statement
    flagged = [f"{facts.name}.requires_grad_(True)"]
    if facts.rebound:
        yield "update it in place", _updated_in_place(tree, statement, facts.name)
        yield "set the flag again after the update", insert_after(tree, statement, flagged)
        return
    insert = insert_after if facts.made else insert_before
    yield "set the flag before the first computation", insert(tree, statement, flagged)


def _updated_in_place(tree: SourceTree, statement: ast.stmt, name: str) -> Edits | None:
    """`w = w - step` as `w -= step`, under `no_grad` only and where `.grad` is not cleared."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp):
        return None
    value = statement.value
    sign = _IN_PLACE.get(type(value.op))
    if sign is None or dotted(value.left) != name or enclosing(tree, statement, WITHS) is None:
        return None
    text = replace_statement(tree, statement, f"{name} {sign} {tree.source(value.right)}")
    uses = reads_of(scope_of(tree, statement), f"{name}.grad")
    if any(use.lineno != statement.lineno for use in uses) or not uses:
        return text
    # a new tensor began with an empty `.grad`; the old one keeps adding
    return combine(tree, text, insert_after(tree, statement, [f"{name}.grad = None"]))
