"""The name and the birth line of a tensor that outlived its graph."""

import ast
import sys
from dataclasses import dataclass

import torch
from torch.autograd.graph import Node

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.holders import Holder, find_holders
from gradwright.doctor.evidence.plain import own_dict
from gradwright.doctor.evidence.storing import storing_lines
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.names import assigned_names, reads_in
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import any_statement_at, statement_at


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a graph node's tensor was stored, and under which name it was read again."""

    name: str  # the user's word for it; empty if nobody's
    built: Site | None
    reused: Site | None
    holder: Holder | None  # who keeps it, or keeps what has taken its place since
    holders: tuple[Holder, ...]
    look: Site | None = None  # the line to look at, where that is not the birth line

    @property
    def said(self) -> str:
        """The name in backticks; without a name, the function or the line that made it."""
        if self.name:
            return f"`{self.name}`"
        found = statement_of_site(self.built)
        if found is None or self.built is None:
            return "an earlier result"
        function = self.built.function.rpartition("<locals>.")[2]
        if isinstance(found[1], ast.Return) and "<" not in function:
            return f"the result of `{function}`"
        return f"the result of line {self.built.line}"

    @property
    def direct(self) -> bool:
        """Whether the line that built the tensor assigns it, as it is, to the name."""
        found = statement_of_site(self.built)
        if found is None or not self.name:
            return False
        names = [_last(name) for name in assigned_names(found[1])]
        plain = self.holder is None or self.holder.kind != "item"
        return plain and names == [_last(self.name)]


def find_origin(crash: Crash, carried: Node, consumer: Node | None) -> Origin:
    """Ask the user's variables first; where the tensor is gone from them, ask the source."""
    holders = tuple(find_holders(crash, lambda tensor: tensor.grad_fn is carried))
    built = crash.journal.stack_of_node(carried._sequence_nr())
    reused = crash.journal.stack_of_node(consumer._sequence_nr()) if consumer is not None else ()
    if holders:
        return _held(crash, holders, built, reused)
    for new in reused:
        for old in built:
            names = _handed_over(old, new)
            if names:
                return Origin(names[0], old, new, None, ())
    heirs = tuple(find_holders(crash, lambda tensor: _took_its_place(crash, tensor, carried)))
    if heirs:
        return _held(crash, heirs, built, reused)
    for new in reused:
        names = _handed_over(new, new)
        if names:
            return Origin(names[0], _first(built), new, None, (), look=new)
    return Origin("", _first(built), _first(reused), None, ())


def _held(
    crash: Crash, holders: tuple[Holder, ...], built: tuple[Site, ...], reused: tuple[Site, ...]
) -> Origin:
    holder = holders[0]
    name = holder.path
    if holder.kind == "item" and not isinstance(holder.container, dict):
        name = holder.variable
    return Origin(name, _stored_at(crash, built, holder), _read_at(reused, holder), holder, holders)


def _took_its_place(crash: Crash, tensor: torch.Tensor, carried: Node) -> bool:
    """Whether a tensor is a later product of the same line and operation."""
    node = tensor.grad_fn
    if node is None or node.name() != carried.name():
        return False
    place_of = crash.journal.main.place_of
    return place_of(node._sequence_nr()) == place_of(carried._sequence_nr())


def _first(stack: tuple[Site, ...]) -> Site | None:
    """The innermost site whose source can be shown."""
    shown = (site for site in stack if tree_of(site.file) is not None)
    return next(shown, stack[0] if stack else None)


def _stored_at(crash: Crash, stack: tuple[Site, ...], holder: Holder) -> Site | None:
    """The line that put the tensor where it is kept."""
    if holder.kind == "item" and not isinstance(holder.container, tuple):
        stored = storing_lines(stack, holder)
        if stored:
            return stored[0]
    if holder.attribute:
        for site in stack:
            statement = _statement(site)
            if statement is not None and any(
                name.rpartition(".")[2] == holder.attribute for name in assigned_names(statement)
            ):
                return site
        if _is_users_object(crash, holder):
            return _first(stack)
    for site in stack:
        if site.code is holder.frame.code:
            return site
        statement = _statement(site)
        assigned = assigned_names(statement) if statement is not None else []
        if holder.root in assigned and _knows(site, holder):
            return site
    return _first(stack)


def _is_users_object(crash: Crash, holder: Holder) -> bool:
    """Whether the variable holds an object of the user's own class, not a library's container."""
    value = holder.frame.frame.f_locals.get(holder.root)
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    return type(value).__module__ == "__main__" or (
        file is not None and crash.journal.is_user(file)
    )


def _knows(site: Site, holder: Holder) -> bool:
    """Whether the function at `site` means the holder's variable by its name."""
    if site.code is holder.frame.code or holder.root in site.code.co_freevars:
        return True
    at_top = holder.frame.frame.f_globals is holder.frame.frame.f_locals
    same_file = site.file == holder.frame.file
    return at_top and same_file and holder.root in site.code.co_names


def _last(name: str | None) -> str:
    return (name or "").rpartition(".")[2]


def _read_at(stack: tuple[Site, ...], holder: Holder) -> Site | None:
    """The line that read it again, in the function that knows its name if there is one."""
    for site in stack:
        statement = _statement(site)
        reads = names_read(statement) if statement is not None else set()
        if holder.attribute:
            if any(name.rpartition(".")[2] == holder.attribute for name in reads):
                return site
        elif site.code is holder.frame.code or (holder.root in reads and _knows(site, holder)):
            return site
    return _first(stack)


def names_read(statement: ast.stmt) -> set[str]:
    """What a statement reads: for `self.table.sum()` also `self.table` and `self`."""
    parts = (name.split(".") for name in reads_in(statement))
    return {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}


def _handed_over(old: Site, new: Site) -> list[str]:
    """Names that the old line assigns and the new line reads.

    `hidden` and `state.hidden` count as one: a field travels under its last name. Two functions
    know only attributes in common.
    """
    before, after = _statement(old), _statement(new)
    if before is None or after is None:
        return []
    assigned, reads = assigned_names(before), names_read(after)
    if old.code is not new.code:
        fields = {_last(name) for name in assigned if "." in name}
        return sorted(name for name in reads if "." in name and _fields(name) & fields)
    exact = [name for name in assigned if name in reads]
    last = {name.rpartition(".")[2] for name in assigned}
    return exact or sorted(name for name in reads if name.rpartition(".")[2] in last)


def _fields(name: str) -> set[str]:
    """`table` and `T` of `bank.table.T`."""
    return set(name.split(".")[1:])


def _statement(site: Site) -> ast.stmt | None:
    tree = tree_of(site.file)
    return statement_at(tree, site.line) if tree is not None else None


def statement_of_site(site: Site | None) -> tuple[SourceTree, ast.stmt] | None:
    """The parsed file and the statement at a site."""
    tree = tree_of(site.file) if site is not None else None
    if tree is None or site is None:
        return None
    statement = statement_at(tree, site.line)
    return None if statement is None else (tree, statement)


def around_site(site: Site | None) -> tuple[SourceTree, ast.stmt] | None:
    """The same to ask what lies around it: any of several statements on the line will do."""
    tree = tree_of(site.file) if site is not None else None
    if tree is None or site is None:
        return None
    statement = any_statement_at(tree, site.line)
    return None if statement is None else (tree, statement)


def value_of(name: str, crash: Crash, file: str) -> object:
    """The value of a dotted name in the innermost function of `file` that knows its first part."""
    first, *rest = name.split(".")
    missing = object()
    for frame in reversed(crash.user_frames):
        value = frame.frame.f_locals.get(first, missing)
        if value is missing or frame.file != file:
            continue
        for part in rest:
            if is_a(value, torch.nn.Module) and part in value._modules:
                value = value._modules[part]
            else:
                value = own_dict(value).get(part, missing)
            if value is missing:
                break
        if value is not missing:
            return value
    return None
