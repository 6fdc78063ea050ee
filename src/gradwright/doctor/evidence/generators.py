"""A generator that waits inside a block that turns recording off.

Grad mode belongs to the thread, not to a function: while the generator is suspended inside its
block, recording stays off in whoever consumes it.
"""

import ast
from collections.abc import Sequence
from dataclasses import replace

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.regions import Region, turns_off, with_region
from gradwright.doctor.evidence.stretches import beginning_of, last_stretch, switches_for
from gradwright.doctor.journal import Operation, Site, Switch
from gradwright.doctor.syntax.decorators import context_name
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import WITHS, Function, With, function_at, statement_at


def held_by_generator(
    crash: Crash, stack: Sequence[Site], operation: Operation | None
) -> Region | None:
    """The block of a suspended generator that held for a stack, or for the backward itself."""
    switches = crash.journal.operations.switches
    for switch in switches_for(crash, operation)[:1]:
        found = _held(crash, beginning_of(switches, switch), stack)
        if found is not None:
            return found
    last = last_stretch(switches)
    if last is None or crash.call is None or crash.call.recording:
        return None
    return _held(crash, last, [frame.site for frame in crash.user_frames])


def _held(crash: Crash, switch: Switch, stack: Sequence[Site]) -> Region | None:
    """The `with` that threw the switch, if its generator is not what runs."""
    site = next(iter(crash.journal.places.stack(switch.place)), None)
    tree = tree_of(site.file) if site is not None else None
    if site is None or tree is None or any(other.code is site.code for other in stack):
        return None
    statement, function = statement_at(tree, site.line), function_at(tree, site.line)
    if not isinstance(statement, WITHS) or function is None or not _yields(statement):
        return None
    if _is_context_manager(tree, function):
        return None
    for index, item in enumerate(statement.items):
        if turns_off(tree, item.context_expr):
            return replace(with_region(tree, statement, index, site), held=True)
    return None


def _yields(statement: With) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))


def _is_context_manager(tree: SourceTree, function: Function) -> bool:
    """Whether its consumer is a `with`, which wants the block to last."""
    names = [context_name(tree, one) or "" for one in getattr(function, "decorator_list", [])]
    return any(name.rpartition(".")[2].endswith("contextmanager") for name in names)
