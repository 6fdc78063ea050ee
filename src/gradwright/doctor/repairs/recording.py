"""Fixes for a graph that was not recorded because recording was off."""

import ast
from collections.abc import Iterator

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.regions import Region
from gradwright.doctor.evidence.severed import Severance
from gradwright.doctor.journal import Operation
from gradwright.doctor.syntax.calls import set_keyword
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.contexts import grad_switch_to_block, unwrap_with, wrap_in_with
from gradwright.doctor.syntax.decorators import insert_decorator, remove_decorator, rename_context
from gradwright.doctor.syntax.names import is_in_place_method
from gradwright.doctor.syntax.narrowed import decorate_generator, yields_outside
from gradwright.doctor.syntax.statements import delete_statement, insert_before
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import (
    FUNCTIONS,
    WITHS,
    Function,
    ancestors,
    block_of,
    enclosing,
    function_at,
    is_named,
    sibling_around,
    statement_at,
)

Edits = tuple[Edit, ...]
_ENABLE = "torch.enable_grad()"
_FROZEN_CUTS = ("recording-off", "inference")


def fixes_for_recording_off(crash: Crash, severance: Severance, region: Region) -> tuple[Fix, ...]:
    """What to write so that the loss has a graph; the most fitting first."""
    call = crash.call
    off_at_call = call is not None and not call.recording
    ways = _inside(crash, severance, region) if off_at_call else _ended(crash, severance, region)
    if region.kind == "left-on":
        ways = _left_on(crash, region)
    found = [Fix(title, edits) for title, edits in ways if edits]
    return (
        tuple(found[:2]) if found else (Fix("run the lines that make the loss with recording on"),)
    )


def _left_on(crash: Crash, region: Region) -> Iterator[tuple[str, Edits | None]]:
    tree, statement = region.tree, region.node
    if tree is None or not isinstance(statement, ast.stmt):
        return
    running = any(frame.code is region.site.code for frame in crash.user_frames)
    if not running:
        title = "let the switch end with the block that needs it"
        yield title, grad_switch_to_block(tree, statement)
        scope = enclosing(tree, statement, FUNCTIONS)
        if scope is not None:
            yield "restore it at the end", _switched_back(tree, scope)
    yield "remove the switch", delete_statement(tree, statement)


def _switched_back(tree: SourceTree, function: Function) -> Edits | None:
    last = function.body[-1]
    return (
        insert_before(tree, last, ["torch.set_grad_enabled(True)"])
        if (
            isinstance(last, ast.Return)
            and not any(isinstance(n, ast.Call) for n in ast.walk(last))
        )
        else None
    )


def _yielded(region: Region) -> Iterator[tuple[str, Edits | None]]:
    """A generator that keeps its block open while the consumer trains."""
    tree, node = region.tree, region.node
    if not region.held or tree is None or not isinstance(node, WITHS):
        return
    title = "use it as a decorator, which puts recording back at each `yield`"
    yield title, decorate_generator(tree, node, region.context)
    yield "yield when the block has ended", yields_outside(tree, node)


def _inside(
    crash: Crash, severance: Severance, region: Region
) -> Iterator[tuple[str, Edits | None]]:
    """The backward itself runs with recording off: turn it on around the graph and its use."""
    yield from _yielded(region)
    frame, lines = meeting(crash, severance)
    tree = tree_of(frame.file) if frame is not None else None
    if frame is None or tree is None:
        return
    function = function_at(tree, frame.line)
    if region.callee is not None and function is not None and _handed(region, function):
        title = f"turn recording on inside `{function.name}`"
        yield title, insert_decorator(tree, function, f"@{_ENABLE}")
    wrapped = wrapped_between(tree, lines, frame.line)
    title = "turn recording on for the lines that need a graph"
    if not region.inference:
        yield title, with_trainer_switch(crash, tree, wrapped)
        return
    renamed = None
    node = region.node
    if region.tree is not None and isinstance(
        node, ast.With | ast.AsyncWith | ast.FunctionDef | ast.AsyncFunctionDef
    ):
        renamed = rename_context(region.tree, node, region.context, "torch.no_grad")
    yield f"{title}; inference mode cannot be undone", joined(region.tree, renamed, tree, wrapped)


def _handed(region: Region, function: Function) -> bool:
    """Whether the library was given this function itself: `optimizer.step(closure)`."""
    callee = region.callee
    return (
        callee is not None
        and callee.code.co_name == function.name
        and ("<locals>" in callee.function or region.context.endswith(".step"))
    )


def meeting(crash: Crash, severance: Severance) -> tuple[CrashFrame | None, list[int]]:
    """The innermost function that runs both a cut operation and the backward; the cuts' lines."""
    for frame in reversed(crash.user_frames):
        lines = [
            site.line
            for cut in severance.cuts
            if cut.cut in _FROZEN_CUTS
            for site in crash.journal.places.stack(cut.place)
            if site.code is frame.code
        ]
        if lines:
            return frame, lines
    return None, []


def wrapped_between(tree: SourceTree, lines: list[int], line: int) -> Edits | None:
    """`with torch.enable_grad():` around the statements from the first of `lines` to `line`."""
    asking = statement_at(tree, line)
    cuts = [statement for one in lines if (statement := statement_at(tree, one)) is not None]
    if asking is None or not cuts:
        return None
    for around in [asking, *ancestors(tree, asking)]:
        if not isinstance(around, ast.stmt) or isinstance(around, FUNCTIONS):
            continue
        siblings = [sibling_around(tree, around, cut) for cut in cuts]
        block, index = block_of(tree, around)
        places = [block.index(one) for one in siblings if one is not None]
        if places:
            first, last = min(*places, index), max(*places, index)
            return wrap_in_with(tree, block[first], block[last], _ENABLE)
    return None


def joined(
    first: SourceTree | None, edits: Edits | None, second: SourceTree, others: Edits | None
) -> Edits | None:
    """The edits of two files, or of one."""
    if edits is None or others is None or first is None:
        return None
    return combine(first, edits, others) if first.file == second.file else (*edits, *others)


def with_trainer_switch(crash: Crash, tree: SourceTree, edits: Edits | None) -> Edits | None:
    """Lightning's evaluation loops use inference mode unless the Trainer is told otherwise."""
    if edits is None or not any("lightning" in frame.file for frame in crash.frames):
        return edits
    for frame in crash.user_frames:
        other = tree_of(frame.file)
        calls = (
            [] if other is None else [n for n in ast.walk(other.root) if isinstance(n, ast.Call)]
        )
        for call in calls:
            if other is not None and is_named(other, call.func, {"Trainer"}):
                switched = set_keyword(other, call, "inference_mode", "False")
                return joined(other, switched, tree, edits)
    return edits


def _ended(
    crash: Crash, severance: Severance, region: Region
) -> Iterator[tuple[str, Edits | None]]:
    """Recording was on again at the backward: the part made with recording off must record."""
    tree, node = region.tree, region.node
    if region.kind == "library" and region.callee is None:
        return  # it is turned off further in than any line here
    narrowed = "turn recording on for that computation"
    if tree is None or node is None or (isinstance(node, ast.stmt) and writes_in_place(node)):
        yield narrowed, _narrowed(crash, severance.cut)
        return
    if isinstance(node, WITHS):
        yield (
            f"compute it outside `{tree.source(node.items[region.item].context_expr)}`",
            (unwrap_with(tree, node, region.item)),
        )
    elif isinstance(node, FUNCTIONS):
        title = f"let `{node.name}` record"
        yield title, remove_decorator(tree, node, region.context)
    if not region.inference:
        yield narrowed, _narrowed(crash, severance.cut)


def writes_in_place(node: ast.AST) -> bool:
    """Whether the code changes tensors in place, which needs recording off for parameters."""
    return any(
        isinstance(one, ast.AugAssign)
        or (isinstance(one, ast.Call) and is_in_place_method(one.func) and not _is_flag(one))
        for one in ast.walk(node)
    )


def _is_flag(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_"


def _narrowed(crash: Crash, cut: Operation | None) -> Edits | None:
    """`with torch.enable_grad():` around the statement of the first cut."""
    stack = crash.journal.places.stack(cut.place) if cut is not None else ()
    for site in stack:
        tree = tree_of(site.file)
        statement = statement_at(tree, site.line) if tree is not None else None
        if tree is not None and statement is not None:
            return wrap_in_with(tree, statement, statement, _ENABLE)
    return None
