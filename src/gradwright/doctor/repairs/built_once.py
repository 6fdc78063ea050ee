"""Fixes for a tensor that was built once and is walked by every backward."""

import ast
from collections.abc import Iterator

import torch

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.calls import site_of_call
from gradwright.doctor.evidence.origin import Origin, statement_of_site, value_of
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.attributes import as_property, fixes_for_attribute
from gradwright.doctor.repairs.cached import cached_block_moved, uncached
from gradwright.doctor.syntax.calls import set_keyword
from gradwright.doctor.syntax.expressions import wrap_value
from gradwright.doctor.syntax.loops import inline_into_use
from gradwright.doctor.syntax.moves import move_into_body
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    Function,
    Loop,
    call_at,
    function_at,
    loops_around,
    statement_at,
)
from gradwright.graph import leaves

Edits = tuple[Edit, ...]


def fixes_for_built_once(crash: Crash, reuse: Reuse, origin: Origin) -> tuple[Fix, ...]:
    """The first fix that can be written, then what to do if the tensor is not meant to train."""
    found: list[Fix] = []
    for title, edits in _rebuilding(crash, reuse, origin):
        if edits is not None:
            found.append(Fix(title, edits))
            break
    detached = _detached(origin) if _others_train(crash, reuse) else None
    if detached is not None:
        found.append(Fix(f"keep {origin.said} fixed, if it is not meant to train", detached))
    return tuple(found)


def _rebuilding(crash: Crash, reuse: Reuse, origin: Origin) -> Iterator[tuple[str, Edits | None]]:
    """Ways to build the tensor for each backward, the most fitting first."""
    yield "open the cached block inside the loop", cached_block_moved(crash, reuse)
    yield "call the function each time", uncached(origin)
    yield f"compute {origin.said} at each use", as_property(origin)
    if origin.holder is not None and origin.holder.attribute:
        yield from fixes_for_attribute(crash, origin)
    yield f"compute {origin.said} with the batch", _looked_up_in_batch(crash, origin)
    yield f"compute {origin.said} for each backward", _moved(crash, reuse, origin)
    if reuse.same_root and reuse.freed_by.step == reuse.call.step:
        yield "keep the graph for the second call", _kept_for_second(crash, reuse)


def _looked_up_in_batch(crash: Crash, origin: Origin) -> Edits | None:
    """`features = embed(ids)` and `features[rows]` to `embed(ids[rows])`: rows are independent."""
    built, used = statement_of_site(origin.built), statement_of_site(origin.reused)
    if built is None or used is None or origin.built is None:
        return None
    tree, statement = built
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return None
    module = value_of(dotted(call.func) or "", crash, origin.built.file)
    if not is_a(module, torch.nn.Embedding):
        return None
    name = assigned_names(statement)[0]
    uses = [
        node
        for node in ast.walk(used[1])
        if isinstance(node, ast.Subscript) and dotted(node.value) == name
    ]
    return inline_into_use(tree, statement, uses[0], [0]) if len(uses) == 1 else None


def _moved(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """Move all lines that built the old graph into the loop or closure around the backward."""
    if origin.built is None:
        return None
    tree = tree_of(origin.built.file)
    if tree is None:
        return None
    owner = _rebuilding_body(crash, tree, origin.built)
    if owner is None:
        return None
    return move_into_body(tree, _old_statements(crash, tree, reuse, origin.built), owner)


def _rebuilding_body(crash: Crash, tree: SourceTree, built: Site) -> Loop | Function | None:
    """The loop that ran backward again, or the closure that did: what lies between it and us."""
    for frame in reversed(crash.user_frames):
        if frame.file != built.file:
            continue
        statement = statement_at(tree, frame.line)
        if statement is None:
            continue
        if frame.code is built.code:
            loops = [loop for loop in loops_around(tree, statement) if built.line < loop.lineno]
            return loops[0] if loops else None
        function = function_at(tree, frame.line)
        outer = function_at(tree, built.line)
        if function is None or function is outer or built.line >= function.lineno:
            continue
        if outer is None or function.lineno <= (outer.end_lineno or 0):
            return function
    return None


def _old_statements(crash: Crash, tree: SourceTree, reuse: Reuse, built: Site) -> list[ast.stmt]:
    """The statements of the same function that made old nodes of the failing graph."""
    lines = {built.line}
    for node in reuse.order:
        number = node._sequence_nr()
        if number < reuse.freed_by.node:
            stack = crash.journal.stack_of_node(number)
            lines.update(site.line for site in stack if site.code is built.code)
    found = {statement_at(tree, line) for line in lines}
    return [statement for statement in found if statement is not None]


def _kept_for_second(crash: Crash, reuse: Reuse) -> Edits | None:
    """Two calls on one loss, written out one after the other."""
    site = site_of_call(crash.journal, reuse.freed_by)
    tree = tree_of(site.file) if site is not None else None
    call = call_at(tree, site.line, {"backward", "grad"}) if tree and site else None
    if tree is None or call is None or reuse.freed_by.place == reuse.call.place:
        return None
    return set_keyword(tree, call, "retain_graph", "True")


def _others_train(crash: Crash, reuse: Reuse) -> bool:
    """Whether the loss has parameters besides those below what was built once."""
    if not reuse.joints:
        return False
    below = {id(leaf) for leaf in leaves([reuse.joints[0].carried])}
    return any(id(leaf) not in below for leaf in leaves(crash.root_nodes()))


def _detached(origin: Origin) -> Edits | None:
    found = statement_of_site(origin.built)
    if found is None or not origin.direct:
        return None
    tree, statement = found
    return wrap_value(tree, statement, "{}.detach()")
