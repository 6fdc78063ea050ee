"""A loss that was built before its parameters changed, and where its parts lie in the source."""

import ast
from dataclasses import dataclass

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.writes import SavedChange, shared_lines
from gradwright.doctor.journal import Site
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.slices import slice_of
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    block_of,
    scope_of,
    sibling_around,
    statement_at,
    statement_calling,
)


@dataclass(frozen=True, slots=True)
class StaleLoss:
    """Statements of the function that builds the loss, changes the parameters and goes backward."""

    tree: SourceTree
    parts: tuple[ast.stmt, ...]  # what defines the loss from the changed parameters on, in order
    changed: ast.stmt
    backward: ast.stmt
    name: str  # the loss

    @property
    def anchor(self) -> ast.stmt | None:
        """The statement in the block of the backward that holds the change."""
        return sibling_around(self.tree, self.backward, self.changed)


def find_stale_loss(crash: Crash, facts: SavedChange) -> StaleLoss | None:
    """The three places in the deepest function that all of them have in common."""
    journal, change = crash.journal, facts.change
    if change is None:
        return None
    every = (facts.modified, *facts.others)
    built = [journal.stack_of_node(one.number) for one in every]
    stacks = [*built, journal.places.stack(change.place), journal.places.stack(facts.call.place)]
    lines = _lines_of(stacks)
    tree = tree_of(lines[0][0]) if lines is not None else None
    if lines is None or tree is None:
        return None
    *numbers, changed_line, backward_line = [line for _, line in lines]
    changed = statement_calling(tree, changed_line, {"step"})
    backward = statement_calling(tree, backward_line, {"backward"})
    if changed is None or backward is None:
        return None
    name = _loss_of(backward)
    first = _sibling_line(tree, backward, min(numbers))
    scope = scope_of(tree, backward)
    parts = slice_of(tree, scope, name, backward_line, first) if name and first else []
    return StaleLoss(tree, tuple(parts), changed, backward, name)


def _lines_of(stacks: list[tuple[Site, ...]]) -> list[tuple[str, int]] | None:
    lines = shared_lines([stack for stack in stacks if stack])
    return None if lines is None else [(site.file, site.line) for site in lines]


def _sibling_line(tree: SourceTree, backward: ast.stmt, line: int) -> int:
    """The first line of the statement in the block of `backward` that covers `line`."""
    inner = statement_at(tree, line)
    outer = sibling_around(tree, backward, inner) if inner is not None else None
    return outer.lineno if outer is not None else 0


def _loss_of(backward: ast.stmt) -> str:
    """The variable on which `backward` is called, or that is handed to the call."""
    calls = [node for node in ast.walk(backward) if isinstance(node, ast.Call)]
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            return dotted(call.func.value) or _scaled(call.func.value)
    for call in calls:
        if len(call.args) >= 1 and (name := dotted(call.args[0])):
            return name
    return ""


def _scaled(value: ast.expr) -> str:
    """`loss` in `scaler.scale(loss).backward()` and `(loss / n).backward()`."""
    if isinstance(value, ast.Call) and value.args:
        return dotted(value.args[0]) or ""
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
    return names[0] if len(names) == 1 else ""


def loop_of_steps(stale: StaleLoss) -> ast.For | None:
    """`for loss in losses:` around the backward and the step that follows it."""
    tree = stale.tree
    loop = tree.parents[stale.backward]
    if not isinstance(loop, ast.For) or stale.changed not in block_of(tree, stale.backward)[0]:
        return None
    return loop if stale.changed.lineno > stale.backward.lineno else None
