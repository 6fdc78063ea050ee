"""Who turned the recording of gradients off: a block, a decorator, a call, a library function."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.spans import span_of_site
from gradwright.doctor.journal import Operation, Site, Switch
from gradwright.doctor.syntax.decorators import context_name
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    FUNCTIONS,
    WITHS,
    Function,
    With,
    ancestors,
    call_at,
    covers_line,
    decorators_of,
    span_of,
    statement_at,
)

Kind = Literal["with", "decorator", "left-on", "library"]

_OFF = {"no_grad", "inference_mode", "set_grad_enabled"}


@dataclass(frozen=True, slots=True)
class Region:
    """What turned recording off for an operation, as the source shows it."""

    kind: Kind
    site: Site
    span: Span
    tree: SourceTree | None = None
    node: With | Function | ast.stmt | None = None
    item: int = 0  # of a `with` that has several
    context: str = ""  # full name: torch.no_grad; for a library function, its text
    callee: Site | None = None  # for a library function: the user function it called back

    @property
    def inference(self) -> bool:
        """Whether it is inference mode, which `enable_grad` cannot undo."""
        return self.context.endswith("inference_mode")


def region_of(crash: Crash, stack: Sequence[Site], operation: Operation | None) -> Region | None:
    """The nearest cause around a user stack (innermost first) that ran with recording off."""
    held = _held_by_generator(crash, stack, operation)
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


def _held_by_generator(
    crash: Crash, stack: Sequence[Site], operation: Operation | None
) -> Region | None:
    """A `with` in a generator that has yielded: recording stays off in whoever consumes it."""
    for switch in _switches(crash, operation)[:1]:
        site = next(iter(crash.journal.places.stack(switch.place)), None)
        tree = tree_of(site.file) if site is not None else None
        statement = statement_at(tree, site.line) if tree is not None and site else None
        if site is None or tree is None or not isinstance(statement, WITHS):
            continue
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))
        if not yields or any(other.code is site.code for other in stack):
            continue
        for index, item in enumerate(statement.items):
            if turns_off(tree, item.context_expr):
                return _with_region(tree, statement, index, site)
    return None


def _written_around(site: Site) -> Region | None:
    """A `with` around the line or a decorator on its function."""
    tree = tree_of(site.file)
    statement = statement_at(tree, site.line) if tree is not None else None
    if tree is None or statement is None:
        return None
    for node in [statement, *ancestors(tree, statement)]:
        if isinstance(node, WITHS) and _in_body(node, site.line):
            for index, item in enumerate(node.items):
                if turns_off(tree, item.context_expr):
                    return _with_region(tree, node, index, site)
        if isinstance(node, FUNCTIONS):
            return _decorator_region(tree, node, site)
        if isinstance(node, ast.Lambda | ast.ClassDef):
            return None
    return None


def _in_body(node: With, line: int) -> bool:
    return any(covers_line(statement, line) for statement in node.body)


def turns_off(tree: SourceTree, context: ast.expr) -> bool:
    """Whether entering this context turns recording off, or may."""
    name = (context_name(tree, context) or "").rpartition(".")[2]
    if name not in _OFF:
        return False
    values = _arguments(context)
    constant = values[0].value if values and isinstance(values[0], ast.Constant) else None
    if name == "inference_mode":
        return constant is not False
    return name == "no_grad" or constant is not True


def _arguments(context: ast.expr) -> list[ast.expr]:
    if not isinstance(context, ast.Call):
        return []
    return [*context.args, *(keyword.value for keyword in context.keywords)]


def _with_region(tree: SourceTree, node: With, index: int, site: Site) -> Region:
    context = node.items[index].context_expr
    name = context_name(tree, context) or ""
    here = Site(site.file, node.lineno, site.function, site.code)
    return Region("with", here, span_of(tree, context), tree, node, index, name)


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
    stack = crash.journal.places.stack(last.place)
    tree = tree_of(stack[0].file) if stack else None
    statement = statement_at(tree, stack[0].line) if tree is not None else None
    if tree is None or statement is None or isinstance(statement, WITHS):
        return None
    call = call_at(tree, stack[0].line, {"set_grad_enabled"})
    if call is None or not turns_off(tree, call):
        return None
    name = context_name(tree, call) or ""
    return Region("left-on", stack[0], span_of(tree, call), tree, statement, 0, name)


def _own_context(crash: Crash, stack: Sequence[Site], operation: Operation | None) -> Region | None:
    """A `with` whose context manager is the user's own function around `no_grad`."""
    for switch in _switches(crash, operation):
        for entered in crash.journal.places.stack(switch.place)[1:]:
            tree = tree_of(entered.file)
            statement = statement_at(tree, entered.line) if tree is not None else None
            if tree is None or not isinstance(statement, WITHS):
                continue
            inside = any(
                site.code is entered.code and _in_body(statement, site.line) for site in stack
            )
            if inside:
                return _with_region(tree, statement, 0, entered)
    return None


def _switches(crash: Crash, operation: Operation | None) -> list[Switch]:
    """The switch that held for an operation; without a record, all that were ever thrown."""
    if operation is not None:
        return [operation.switch] if operation.switch is not None else []
    known = {one.place: one for one in crash.journal.operations.switches if not one.recording}
    return list(reversed(known.values()))


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
