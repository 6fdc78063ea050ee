"""Parameters that were frozen from the start: the call that made them so."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.journal import Site
from gradwright.doctor.journal.operations import storage_of
from gradwright.doctor.syntax.calls import keyword_of
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import function_at, is_named

_SITES = 4  # lines that touched the memory first; the call is near one of them


@dataclass(frozen=True, slots=True)
class MadeFrozen:
    """The call in its file."""

    tree: SourceTree
    call: ast.Call


def made_frozen(crash: Crash, tensor: torch.Tensor) -> MadeFrozen | None:
    """The call near the first use of the tensor's memory that makes frozen parameters."""
    for site in _first_sites(crash, storage_of(tensor)):
        tree = tree_of(site.file)
        if tree is None:
            continue
        scope: ast.AST = function_at(tree, site.line) or tree.root
        calls = [node for node in ast.walk(scope) if isinstance(node, ast.Call)]
        found = [call for call in calls if _freezes(tree, call) and call.lineno >= site.line]
        if found:
            return MadeFrozen(tree, min(found, key=lambda call: call.lineno))
    return None


def _first_sites(crash: Crash, storage: int) -> Iterator[Site]:
    if not storage:
        return
    places = [one.place for one in crash.journal.operations.entries if one.storage == storage]
    for place in list(dict.fromkeys(places))[:_SITES]:
        yield from crash.journal.places.stack(place)[:2]


def _freezes(tree: SourceTree, call: ast.Call) -> bool:
    if is_table(MadeFrozen(tree, call)):
        freeze = keyword_of(call, "freeze")
        return freeze is None or _is_constant(freeze.value, True)
    flag = keyword_of(call, "requires_grad")
    return is_named(tree, call.func, {"Parameter"}) and (
        flag is not None and _is_constant(flag.value, False)
    )


def is_table(found: MadeFrozen) -> bool:
    """Whether the call is `nn.Embedding.from_pretrained`, which freezes unless told otherwise."""
    function = found.call.func
    named = isinstance(function, ast.Attribute) and function.attr == "from_pretrained"
    return named and "Embedding" in found.tree.source(function)


def _is_constant(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
