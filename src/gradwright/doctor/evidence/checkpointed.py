"""The checkpoint whose recomputation went another way than its forward."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax import Function, SourceTree, call_at, function_at, tree_of
from gradwright.graph import reachable

CHECKPOINTS = {"checkpoint", "checkpoint_sequential"}
_NODES = 10_000


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What was run twice, and from where."""

    function: object  # the module or function given to `checkpoint`
    call: Line | None  # the user's line that called `checkpoint`
    codes: frozenset[CodeType]  # user functions that made graph nodes inside
    forward: frozenset[tuple[CodeType, int]]  # lines that made nodes in the forward
    again: frozenset[tuple[CodeType, int]]  # and in the recomputation
    entry: CodeType | None = None  # the code that runs first inside
    arguments: tuple[object, ...] = ()  # what it was called with, by position

    @property
    def name(self) -> str:
        """The class of the module, or the function's name."""
        if is_a(self.function, torch.nn.Module):
            return type(self.function).__name__
        return getattr(self.function, "__name__", "the function")

    @property
    def trees(self) -> Iterator[tuple[SourceTree, Function]]:
        """The functions that ran inside, as syntax."""
        for code in sorted(self.codes, key=lambda one: (one.co_filename, one.co_firstlineno)):
            tree = tree_of(code.co_filename)
            function = function_at(tree, code.co_firstlineno) if tree is not None else None
            if tree is not None and function is not None:
                yield tree, function


def find_recomputation(crash: Crash) -> Recomputation | None:
    """Read the frame that torch keeps for the checkpoint from the traceback."""
    kept = _kept_frame(crash)
    if kept is None:
        return None
    function = _cell(getattr(kept, "recompute_fn", None), "fn")
    entry = _entry_code(function)
    forward, call = _lines_of_forward(crash, entry)
    again = _lines_again(crash, entry)
    codes = {code for code, _ in forward | again}
    if entry is not None and crash.journal.is_user(entry.co_filename):
        codes.add(entry)
    given = getattr(kept, "saved_args", ())
    arguments = tuple(given) if isinstance(given, list | tuple) else ()
    return Recomputation(function, call, frozenset(codes), forward, again, entry, arguments)


def _kept_frame(crash: Crash) -> object:
    for frame in reversed(crash.frames):
        for name in ("frame", "self", "target_frame"):
            value = frame.frame.f_locals.get(name)
            if type(value).__name__ == "_CheckpointFrame":
                return value
    return None


def _cell(function: object, name: str) -> object:
    """A variable that a function closes over."""
    if not is_a(function, FunctionType) or name not in function.__code__.co_freevars:
        return None
    cells = function.__closure__ or ()
    cell = cells[function.__code__.co_freevars.index(name)]
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _entry_code(function: object) -> CodeType | None:
    """The code that runs first inside."""
    target: object = function
    if is_a(function, torch.nn.Module):
        target = type(function).forward
    while hasattr(target, "func"):  # functools.partial
        target = target.func
    target = inspect.unwrap(target) if callable(target) else None
    target = getattr(target, "__func__", target)
    return target.__code__ if is_a(target, FunctionType) else None


def _lines_of_forward(
    crash: Crash, entry: CodeType | None
) -> tuple[frozenset[tuple[CodeType, int]], Line | None]:
    """Lines below a checkpoint call that made nodes still in the graph, and the call."""
    lines: set[tuple[CodeType, int]] = set()
    call: Line | None = None
    for node in list(reachable(crash.root_nodes()))[:_NODES]:
        inside, outer = _split(_stack(crash, node))
        if outer is None:
            continue
        if entry is None or any(site.code is entry for site in inside) or not inside:
            lines.update((site.code, site.line) for site in inside)
            call = call if call is not None and inside else Line(outer)
    return frozenset(lines), call


def _stack(crash: Crash, node: Node) -> tuple[Site, ...]:
    return crash.journal.stack_of_node(node._sequence_nr())


def _split(stack: tuple[Site, ...]) -> tuple[tuple[Site, ...], Site | None]:
    """The part of a stack inside a checkpoint, and the line that called it."""
    for index, site in enumerate(stack):
        if calls_checkpoint(site) is not None:
            return stack[:index], site
    return (), None


def calls_checkpoint(site: Site) -> ast.Call | None:
    """The call of `checkpoint` on a line."""
    tree = tree_of(site.file)
    return call_at(tree, site.line, CHECKPOINTS) if tree is not None else None


def _lines_again(crash: Crash, entry: CodeType | None) -> frozenset[tuple[CodeType, int]]:
    """Lines that made nodes within the failing call: that is where the recomputation ran."""
    call, timeline = crash.call, crash.journal.main
    if call is None or entry is None:
        return frozenset()
    lines: set[tuple[CodeType, int]] = set()
    for start, place in zip(reversed(timeline.starts), reversed(timeline.places), strict=True):
        if start < call.node:
            break
        stack = crash.journal.places.stack(place)
        depth = next((i for i, site in enumerate(stack) if site.code is entry), None)
        if depth is not None:
            lines.update((site.code, site.line) for site in stack[: depth + 1])
    return frozenset(lines)
