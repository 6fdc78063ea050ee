"""A tensor with a graph that was copied, pickled or turned into a numpy array."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.holders import Holder, find_holders
from gradwright.doctor.evidence.lines import line_of_frame
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.tree import SourceTree

Kind = Literal["copy", "numpy", "pickle"]

_SIGNS: tuple[tuple[str, Kind], ...] = (
    ("support the deepcopy protocol", "copy"),
    ("Can't call numpy() on Tensor that requires grad", "numpy"),
    ("refusing to serialize non-leaf tensor", "pickle"),
)
_LOCALS = {"__deepcopy__": "self", "__array__": "self", "reduce_tensor": "tensor"}


@dataclass(frozen=True, slots=True)
class GraphCopy:
    """What was tried with which tensor, and who holds it."""

    kind: Kind
    tensor: torch.Tensor | None
    holder: Holder | None


@dataclass(frozen=True, slots=True)
class Store:
    """A statement that puts a value into an attribute or container."""

    tree: SourceTree
    statement: ast.stmt
    value: ast.expr
    target: str  # empty for `append`


def find_graph_copy(crash: Crash) -> GraphCopy | None:
    """The tensor that could not be copied, from the library's own frame."""
    kind = next((kind for sign, kind in _SIGNS if sign in crash.message), None)
    if kind is None:
        return None
    tensor = _refused_tensor(crash)
    if tensor is None:
        return GraphCopy(kind, None, None)
    holders = find_holders(crash, lambda other: other is tensor)
    return GraphCopy(kind, tensor, holders[0] if holders else None)


def _refused_tensor(crash: Crash) -> torch.Tensor | None:
    for frame in reversed(crash.frames):
        name = _LOCALS.get(frame.code.co_name)
        value = frame.frame.f_locals.get(name) if name and not frame.user else None
        if is_a(value, torch.Tensor):
            return value
    return None


def array_source(crash: Crash) -> str:
    """The expression on which the failing line calls `.numpy()`, if it is short."""
    frame = crash.raised_at
    line = line_of_frame(frame) if frame is not None else None
    tree, statement = (line.tree, line.statement) if line is not None else (None, None)
    if tree is None or statement is None:
        return ""
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute) and node.attr == "numpy":
            text = tree.source(node.value)
            return text if len(text) <= 40 and "\n" not in text else ""
    return ""


def stores_of(crash: Crash, holder: Holder) -> list[Store]:
    """Statements of the user that put something where the holder keeps the tensor.

    Those in a function that was running when the tensor was made come first.
    """
    name = holder.attribute or holder.root
    found = [store for tree in source_files(crash) for store in _stores_in(tree, name)]
    node = holder.tensor.grad_fn
    stack = crash.journal.stack_of_node(node._sequence_nr()) if node is not None else ()
    near = {(site.file, site.line) for site in stack}
    lines = {site.file: site.line for site in stack}

    def distance(store: Store) -> tuple[bool, bool, int]:
        file, line = store.tree.file, store.statement.lineno
        gap = line - lines.get(file, 0)
        return ((file, line) not in near, file not in lines, gap if gap >= 0 else 100_000 - gap)

    return sorted(found, key=distance)


def _stores_in(tree: SourceTree, name: str) -> Iterator[Store]:
    for node in ast.walk(tree.root):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if _named(target) == name and not isinstance(node.value, ast.Constant):
                    yield Store(tree, node, node.value, tree.source(target))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if _appends_to(call, name):
                yield Store(tree, node, call.args[0], "")


def _appends_to(call: ast.Call, name: str) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return False
    return len(call.args) == 1 and _named(call.func.value) == name


def _named(target: ast.expr) -> str:
    """The last name of `self.hidden`, `self.hidden[key]` or `hidden`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def is_read_elsewhere(crash: Crash, store: Store, name: str) -> bool:
    """Whether some code reads the attribute other than to ask whether it is there."""
    for tree in source_files(crash):
        for node in ast.walk(tree.root):
            if not isinstance(node, ast.Attribute) or node.attr != name:
                continue
            asks = isinstance(tree.parents[node], ast.Compare)
            subscript = isinstance(tree.parents[node], ast.Subscript)
            stored = subscript and not isinstance(tree.parents[node].ctx, ast.Load)  # type: ignore[attr-defined]
            if isinstance(node.ctx, ast.Load) and not asks and not stored:
                return True
    return False
