"""Who turned the recording of gradients off: a block, a decorator, a call, a library function."""

import ast
from collections.abc import Sequence

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.generators import held_by_generator
from gradwright.doctor.evidence.regions import Region, turns_off, with_region
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.evidence.stretches import beginning_of, switches_for
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.syntax.decorators import context_name
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    FUNCTIONS,
    WITHS,
    Function,
    With,
    ancestors,
    any_statement_at,
    call_at,
    covers_line,
    decorators_of,
    span_of,
    statement_at,
    statement_of,
)


def region_of(crash: Crash, stack: Sequence[Site], operation: Operation | None) -> Region | None:
    """The nearest cause around a user stack (innermost first) that ran with recording off."""
    held = held_by_generator(crash, stack, operation)
    if held is not None:
        return held
    for site in stack:
        found = _written_around(site)
        if found is not None:
            return found
    left = _left_on(crash, operation)
    if left is not None:
        return left
    return _own_context(crash, stack, operation) or _behind_library(crash, stack, operation)


def _written_around(site: Site) -> Region | None:
    """A `with` around the line or a decorator on its function."""
    tree = tree_of(site.file)
    statement = any_statement_at(tree, site.line) if tree is not None else None
    if tree is None or statement is None:
        return None
    for node in [statement, *ancestors(tree, statement)]:
        if isinstance(node, WITHS) and _in_body(node, site.line):
            for index, item in enumerate(node.items):
                if turns_off(tree, item.context_expr):
                    return with_region(tree, node, index, site)
        if isinstance(node, FUNCTIONS):
            return _decorator_region(tree, node, site)
        if isinstance(node, ast.Lambda | ast.ClassDef):
            return None
    return None


def _in_body(node: With, line: int) -> bool:
    return any(covers_line(statement, line) for statement in node.body)


def _decorator_region(tree: SourceTree, node: Function, site: Site) -> Region | None:
    for decorator in decorators_of(node):
        if turns_off(tree, decorator):
            here = Site(site.file, decorator.lineno, site.function, site.code)
            name = context_name(tree, decorator) or ""
            return Region("decorator", here, span_of(tree, decorator), tree, node, 0, name)
    return None


def _left_on(crash: Crash, operation: Operation | None) -> Region | None:
    """The last `set_grad_enabled(False)` statement that nothing has undone."""
    switches = crash.journal.operations.switches
    last = operation.switch if operation is not None else (switches[-1] if switches else None)
    if last is None or last.recording:
        return None
    # what was turned off and on again within the stretch has put back what it found: off
    for switch in (last, beginning_of(switches, last)):
        stack = crash.journal.places.stack(switch.place)
        found = _called_plainly(stack[0]) if stack else None
        if found is not None:
            return found
    return None


def _called_plainly(site: Site) -> Region | None:
    """`torch.set_grad_enabled(False)` as a statement of its own."""
    tree = tree_of(site.file)
    call = call_at(tree, site.line, {"set_grad_enabled"}) if tree is not None else None
    if tree is None or call is None or not turns_off(tree, call):
        return None
    statement = statement_of(tree, call)
    if statement is None or isinstance(statement, WITHS):
        return None
    name = context_name(tree, call) or ""
    return Region("left-on", site, span_of(tree, call), tree, statement, 0, name)


def _own_context(crash: Crash, stack: Sequence[Site], operation: Operation | None) -> Region | None:
    """A `with` whose context manager is the user's own function around `no_grad`."""
    for switch in switches_for(crash, operation):
        for entered in crash.journal.places.stack(switch.place)[1:]:
            tree = tree_of(entered.file)
            statement = statement_at(tree, entered.line) if tree is not None else None
            if tree is None or not isinstance(statement, WITHS):
                continue
            inside = any(
                site.code is entered.code and _in_body(statement, site.line) for site in stack
            )
            if inside:
                return with_region(tree, statement, 0, entered)
    return None


def _behind_library(
    crash: Crash, stack: Sequence[Site], operation: Operation | None
) -> Region | None:
    """The user's line that called a library function which turned recording off and called back."""
    switch = operation.switch if operation is not None else None
    place = () if switch is None else crash.journal.places.stack(switch.place)
    index = next((i for i, site in enumerate(stack) if place and _same(site, place[0])), None)
    if index is None:
        return None
    site = stack[index]
    span = span_of_site(site)
    return Region(
        "library",
        site,
        span,
        tree_of(site.file),
        context=called_text(site),
        callee=stack[index - 1] if index else None,
    )


def _same(one: Site, other: Site) -> bool:
    return one.code is other.code and one.line == other.line


def called_text(site: Site) -> str:
    """The function called by the statement at a site, as written: `self.optim.step`."""
    tree = tree_of(site.file)
    statement = statement_at(tree, site.line) if tree is not None else None
    if tree is None or statement is None:
        return ""
    calls = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and node.lineno <= site.line <= (node.end_lineno or 0)
    ]
    inner = [call for call in calls if not isinstance(call.func, ast.Attribute | ast.Name)]
    plain = [call for call in calls if call not in inner]
    # `seen.append(optimizer.step(closure).item())`: the call that is handed a function
    handed = [call for call in plain if any(isinstance(arg, ast.Name) for arg in call.args)]
    chosen = (handed or plain)[-1:] or calls[:1]
    return tree.source(chosen[0].func) if chosen else ""
