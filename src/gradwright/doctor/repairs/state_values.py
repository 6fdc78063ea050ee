"""What a state is: its value now, and what the source gives it at other times."""

import ast
from collections.abc import Iterator
from types import CellType, FunctionType, GeneratorType

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, value_of
from gradwright.doctor.evidence.owners import attribute_of, owners_of
from gradwright.doctor.journal import Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.tree import SourceTree


def state_value(crash: Crash, origin: Origin, name: str) -> object:
    """The state under the name that the reading line has for it; None where it is out of sight."""
    if origin.reused is not None:
        value = value_of(name, crash, origin.reused.file)
        if value is None:
            value = _kept_by_function(crash, origin.reused, name)
        if value is not None:
            return value
    holder, last = origin.holder, name.rpartition(".")[2]
    owner = holder.owner if holder is not None else _owner(crash, origin, name)
    kept = attribute_of(owner, last)
    if kept is None and holder is not None and holder.path == name:
        return holder.tensor
    return kept


def _kept_by_function(crash: Crash, site: Site, name: str) -> object:
    """What a function in sight keeps while it does not run: a closure, a waiting generator."""
    for frame in reversed(crash.user_frames):
        for value in list(frame.frame.f_locals.values()):
            if is_a(value, GeneratorType) and value.gi_code is site.code:
                waiting = value.gi_frame
                return waiting.f_locals.get(name) if waiting is not None else None
            if not is_a(value, FunctionType) or value.__code__ is not site.code:
                continue
            cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
            if name in cells:
                return _content(cells[name])
    return None


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return None


def _owner(crash: Crash, origin: Origin, name: str) -> object:
    """The module or object whose class wrote `self.<attribute>` on the reading line."""
    for _, module in owners_of(crash, origin):
        if name.startswith("self.") and hasattr(module, name.removeprefix("self.")):
            return module
    return None


def may_be_none(tree: SourceTree, statement: ast.stmt, name: str) -> bool:
    """Whether the source somewhere sets the state to None, or gives None as its default."""
    for node in ast.walk(tree.root):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = assigned_names(node)
            if node.value.value is None and any(
                one == name or one.rpartition(".")[2] == name.rpartition(".")[2] for one in names
            ):
                return True
        if isinstance(node, ast.FunctionDef) and any(
            argument.arg == name for argument in node.args.args
        ):
            return True
    return False


def starts_as_number(tree: SourceTree, name: str) -> bool:
    """Whether the source somewhere gives the state a plain number, such as `total = 0`."""
    for node in ast.walk(tree.root):
        in_class = isinstance(tree.parents.get(node), ast.ClassDef)
        for target, value in _given(node):
            plain = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            field = in_class or "." in target
            same = "." in name and field and target.rpartition(".")[2] == name.rpartition(".")[2]
            if plain and (target == name or same):
                return True
    return False


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names and what a statement gives them: `a, b = 0, x` gives two."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _pairs(node.target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        if len(target.elts) == len(value.elts):
            for one, given in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, given)
    elif (name := dotted(target)) is not None:
        yield name, value
