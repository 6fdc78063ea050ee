"""A statement that froze too much: which parts of the module to leave out, or to unfreeze again."""

import ast
import functools
from collections.abc import Iterator, Sequence

import torch

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.frozen import Feed
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.syntax.expressions import replace_expression
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree

Edits = tuple[Edit, ...]
Modules = Sequence[tuple[str, torch.nn.Module]]


def held_by_optimizer(
    crash: Crash, tree: SourceTree, statement: ast.stmt, last: Sequence[Feed]
) -> tuple[str, Edits | None]:
    """Unfreeze again, of what one statement froze, the parts that an optimizer holds."""
    title = "let the part train that the optimizer holds"
    expression = _frozen_module(tree, statement)
    frozen = _frozen_with(crash, last[-1])
    wanted = {id(feed.tensor) for feed in last if feed.wanted}
    module = _module_with(crash, frozen)
    if expression is None or module is None or not wanted or not wanted < frozen:
        return title, None
    if {id(one) for one in module.parameters()} != frozen:
        return title, None
    inside = dict(module.named_modules())
    names = covering(list(inside.items()), wanted)
    if {id(one) for name in names for one in inside[name].parameters()} != wanted:
        return title, None
    text = tree.source(expression)
    paths = [functools.reduce(_child, name.split("."), text) for name in names]
    return title, insert_after(tree, statement, [f"{path}.requires_grad_(True)" for path in paths])


def _frozen_with(crash: Crash, feed: Feed) -> set[int]:
    """All that was frozen where this parameter was."""
    place = feed.freeze.place if feed.freeze is not None else None
    freezes = [one for one in crash.journal.operations.freezes if one.place == place]
    return {id(tensor) for one in freezes if (tensor := one.tensor()) is not None}


def but_the_head(
    crash: Crash, tree: SourceTree, statement: ast.stmt, feeds: Sequence[Feed]
) -> Iterator[tuple[str, Edits | None]]:
    """Freeze all children but the last one with parameters."""
    expression = _frozen_module(tree, statement)
    module = _module_with(crash, {id(feed.tensor) for feed in feeds})
    if expression is None or module is None:
        return
    text = tree.source(expression)
    children = [(n, c) for n, c in module.named_children() if any(True for _ in c.parameters())]
    if len(children) < 2:
        return
    head = _child(text, children[-1][0])
    if len(children) == 2 and _names_nothing(statement):
        rest = _child(text, children[0][0])
        yield f"freeze `{rest}` only; `{head}` trains", replace_expression(tree, expression, rest)
    unfrozen = insert_after(tree, statement, [f"{head}.requires_grad_(True)"])
    yield f"let the last part, `{head}`, train", unfrozen


def _child(text: str, name: str) -> str:
    return f"{text}[{name}]" if name.isdigit() else f"{text}.{name}"


def _names_nothing(statement: ast.stmt) -> bool:
    """Whether the loop freezes without looking at names, which would change with the module."""
    return not isinstance(statement, ast.For) or not any(
        isinstance(node, ast.If | ast.Compare) for node in ast.walk(statement)
    )


def _module_with(crash: Crash, frozen: set[int]) -> torch.nn.Module | None:
    """The smallest module in sight that has all the frozen parameters."""
    found: list[tuple[int, torch.nn.Module]] = []
    for _, outer in modules_in_sight(crash):
        for module in outer.modules():
            own = {id(one) for one in module.parameters()}
            if frozen <= own:
                found.append((len(own), module))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def module_in(tree: SourceTree, expression: ast.expr) -> ast.expr | None:
    """`net` in `net.parameters()` or `net.named_parameters()`."""
    for node in ast.walk(expression):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in ("parameters", "named_parameters"):
            return node.func.value
    return None


def _frozen_module(tree: SourceTree, statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.For):
        return module_in(tree, statement.iter)
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr == "requires_grad_":
            return node.func.value
    return None


def covering(modules: Modules, frozen: set[int]) -> list[str]:
    """The fewest modules whose parameters are all among `frozen`, the largest first."""
    names: list[str] = []
    left = set(frozen)
    sized = [(name, {id(one) for one in module.parameters()}) for name, module in modules]
    for name, own in sorted(sized, key=lambda pair: -len(pair[1])):
        if own and own <= frozen and own & left:
            names.append(name)
            left -= own
    return names
