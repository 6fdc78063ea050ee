"""Fixes for a loss whose parameters are all frozen."""

import ast
from collections.abc import Iterator, Sequence

import torch

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.frozen import Feed
from gradwright.doctor.evidence.made_frozen import is_table, made_frozen
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.evidence.severed import Severance
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.frozen_parts import (
    but_the_head,
    covering,
    held_by_optimizer,
    module_in,
)
from gradwright.doctor.syntax.calls import remove_keyword, set_keyword
from gradwright.doctor.syntax.statements import delete_statement, insert_before
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    FUNCTIONS,
    ancestors,
    block_of,
    loops_around,
    sibling_around,
    statement_at,
)

Edits = tuple[Edit, ...]


def fixes_for_frozen(crash: Crash, severance: Severance, feeds: Sequence[Feed]) -> tuple[Fix, ...]:
    """Unfreeze what is meant to train; then the other readings."""
    found = [Fix(title, edits) for title, edits in _ways(crash, severance, feeds) if edits]
    return tuple(found[:2]) or (Fix("leave the part that is to train unfrozen"),)


def _ways(
    crash: Crash, severance: Severance, feeds: Sequence[Feed]
) -> Iterator[tuple[str, Edits | None]]:
    freeze = feeds[-1].freeze
    stack = crash.journal.places.stack(freeze.place) if freeze is not None else ()
    if not stack:
        yield from _made_trainable(crash, feeds[-1])
    if not stack or frozen_for_a_while(crash, stack):
        yield "unfreeze them before their loss", _unfrozen_before(crash, severance, feeds)
        return
    tree = tree_of(stack[0].file)
    statement = freezing_statement(tree, stack[0]) if tree is not None else None
    if tree is None or statement is None:
        return
    last = [feed for feed in feeds if feed.freeze is not None and _at(feed, feeds[-1])]
    yield held_by_optimizer(crash, tree, statement, last)
    yield from but_the_head(crash, tree, statement, last)
    yield "train everything", delete_statement(tree, statement)


def _made_trainable(crash: Crash, feed: Feed) -> Iterator[tuple[str, Edits | None]]:
    """Leave out what makes a parameter frozen from the start."""
    found = made_frozen(crash, feed.tensor)
    if found is None:
        return
    keyword = "freeze" if is_table(found) else "requires_grad"
    if keyword == "freeze":
        yield "keep the table trainable", set_keyword(found.tree, found.call, keyword, "False")
    else:
        yield "let it require grad", remove_keyword(found.tree, found.call, keyword)


def _at(feed: Feed, other: Feed) -> bool:
    one, two = feed.freeze, other.freeze
    return one is not None and two is not None and one.place == two.place


def frozen_for_a_while(crash: Crash, stack: Sequence[Site]) -> bool:
    """Whether the freeze and the backward lie in one loop: one phase freezes for the other."""
    for frame in crash.user_frames:
        tree = tree_of(frame.file)
        for site in stack:
            if tree is None or site.code is not frame.code:
                continue
            here, there = statement_at(tree, site.line), statement_at(tree, frame.line)
            if here is None or there is None:
                continue
            loops = loops_around(tree, there)
            if any(loop in loops for loop in loops_around(tree, here)):
                return True
    return False


def _unfrozen_before(crash: Crash, severance: Severance, feeds: Sequence[Feed]) -> Edits | None:
    """`module.requires_grad_(True)` before the first line of the loss in the failing function."""
    frozen = {id(feed.tensor) for feed in feeds}
    for frame in reversed(crash.user_frames):
        tree = tree_of(frame.file)
        names = covering(_modules_of(frame), frozen)
        first = _first_statement(crash, severance, tree, frame) if tree is not None else None
        if tree is not None and names and first is not None:
            lines = [f"{name}.requires_grad_(True)" for name in names]
            return insert_before(tree, first, lines)
    return None


def _modules_of(frame: CrashFrame) -> list[tuple[str, torch.nn.Module]]:
    """Modules that the function can name: variables and attributes of variables."""
    found: list[tuple[str, torch.nn.Module]] = []
    for name, value in frame.frame.f_locals.items():
        if is_a(value, torch.nn.Module):
            found.append((name, value))
            found += [(f"{name}.{key}", child) for key, child in value.named_children()]
        elif not is_a(value, type):
            items = list(own_dict(value).items())
            found += [(f"{name}.{k}", v) for k, v in items if is_a(v, torch.nn.Module)]
    return [(name, module) for name, module in found if _is_code(name)]


def _is_code(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _first_statement(
    crash: Crash, severance: Severance, tree: SourceTree, frame: CrashFrame
) -> ast.stmt | None:
    """The first statement beside the backward that the loss was computed by."""
    asking = statement_at(tree, frame.line)
    if asking is None:
        return None
    block, index = block_of(tree, asking)
    first = index
    for operation in severance.chain:
        for site in crash.journal.places.stack(operation.place):
            statement = statement_at(tree, site.line) if site.code is frame.code else None
            beside = sibling_around(tree, asking, statement) if statement is not None else None
            if beside is not None:
                first = min(first, block.index(beside))
    return block[first]


def freezing_statement(tree: SourceTree, site: Site) -> ast.stmt | None:
    """The statement that froze: the whole loop where a loop over parameters did it."""
    statement = statement_at(tree, site.line)
    if statement is None:
        return None
    for outer in ancestors(tree, statement):
        if isinstance(outer, FUNCTIONS):
            break
        if isinstance(outer, ast.For) and module_in(tree, outer.iter) is not None:
            return outer
    return statement
