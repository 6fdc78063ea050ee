"""Fixes for a collection that is never emptied."""

import ast

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.collected import Collected
from gradwright.doctor.evidence.origin import statement_of_site
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.evidence.storing import ADDING
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.attributes import step_statement
from gradwright.doctor.syntax.names import reads_in, reads_of
from gradwright.doctor.syntax.state import insert_at_function_end
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    any_statement_at,
    block_of,
    class_at,
    function_at,
    loops_around,
)

Edits = tuple[Edit, ...]


def fixes_for_collected(crash: Crash, collected: Collected) -> tuple[Fix, ...]:
    """Empty the collection, and those that grow with it, when the step is over."""
    for frame in reversed(crash.user_frames):
        names = _names_in(frame, collected)
        if not names:
            continue
        lines = [f"{name}.clear()" for name in names]
        edits = _after_last_read(crash, frame, names, lines)
        if edits is not None:
            said = " and ".join(f"`{name}`" for name in names)
            return (Fix(f"empty {said} when the step is over", edits),)
    return ()


def _names_in(frame: CrashFrame, collected: Collected) -> list[str]:
    """How this function calls the collection and the lists that grow with it."""
    container, owner = collected.holder.container, collected.holder.owner
    for name, value in frame.frame.f_locals.items():
        if value is container:
            names = _of_equal_length(name, container, dict(frame.frame.f_locals), "")
            return [name, *(one for one in names if _read_for_the_loss(frame, one))]
        if owner is not None and value is owner:
            attribute = collected.holder.attribute
            names = _of_equal_length(attribute, container, dict(own_dict(value)), f"{name}.")
            return [
                f"{name}.{attribute}",
                *(one for one in names if _read_for_the_loss(frame, one)),
            ]
    return []


def _read_for_the_loss(frame: CrashFrame, name: str) -> bool:
    """Whether the source reads a list before the backward, other than to add to it.

    A history that is only appended to, and read when all is over, stays.
    """
    tree = tree_of(frame.file)
    if tree is None:
        return False
    owner = class_at(tree, frame.line) if name.startswith("self.") else None
    if owner is not None:
        methods = [one for one in owner.body if isinstance(one, ast.FunctionDef)]
        reads = [read for method in methods for read in reads_of(method, name)]
    else:
        scope = function_at(tree, frame.line) or tree.root
        reads = [read for read in reads_of(scope, name) if read.lineno <= frame.line]
    return any(not _is_added_to(tree, read) for read in reads)


def _is_added_to(tree: SourceTree, read: ast.expr) -> bool:
    """`rewards` in `rewards.append(…)`."""
    name = read.attr if isinstance(read, ast.Attribute) else ""
    return name in ADDING and isinstance(tree.parents[read], ast.Call)


def _of_equal_length(
    first: str, container: object, others: dict[str, object], prefix: str
) -> list[str]:
    length = len(container) if is_a(container, list, dict) else -1
    return [
        prefix + name
        for name, value in others.items()
        if is_a(value, list) and len(value) == length
        if value is not container and name != first
    ]


def _after_last_read(
    crash: Crash, frame: CrashFrame, names: list[str], lines: list[str]
) -> Edits | None:
    tree = tree_of(frame.file)
    if tree is None:
        return None
    function = function_at(tree, frame.line)
    if function is not None and function.name == frame.code.co_name and not _loops(tree, frame):
        edits = insert_at_function_end(tree, function, lines)
        if edits is not None:
            return edits
    place = _last_reader(crash, tree, frame, names)
    return insert_after(tree, place, lines) if place is not None else None


def _loops(tree: SourceTree, frame: CrashFrame) -> bool:
    statement = any_statement_at(tree, frame.line)
    return statement is not None and bool(loops_around(tree, statement))


def _last_reader(
    crash: Crash, tree: SourceTree, frame: CrashFrame, names: list[str]
) -> ast.stmt | None:
    """The last statement after the backward, in its block, that steps or reads the lists."""
    found = step_statement(crash, frame.site) or statement_of_site(frame.site)
    if found is None:
        return None
    statement = found[1]
    block, index = block_of(tree, statement)
    for later in block[index + 1 :]:
        if any(name in reads_in(later) for name in names):
            statement = later
    return statement
