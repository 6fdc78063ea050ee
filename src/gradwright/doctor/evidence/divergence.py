"""Why a recomputation differs: a branch that went another way, a state that the block writes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gradwright.doctor.evidence.checkpointed import Recomputation
from gradwright.doctor.syntax import (
    Function,
    SourceTree,
    accesses,
    class_at,
    dotted,
    function_at,
    qualified_name,
    statement_of,
    tree_of,
)
from gradwright.doctor.syntax.names import local_names

_WRITERS = {"append", "extend", "update", "add", "insert", "pop", "popleft", "clear", "setdefault"}
_CHANCE = ("random.", "numpy.random.", "secrets.")


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision inside the block that may fall differently the second time."""

    tree: SourceTree
    test: ast.expr
    chance: ast.Call | None  # the draw it depends on, from a generator torch does not restore


@dataclass(frozen=True, slots=True)
class StateWrite:
    """A statement inside the block that changes what outlives it."""

    tree: SourceTree
    function: Function
    statement: ast.stmt
    target: str  # the dotted name that is written
    owner: str  # the class whose method it is, empty outside of classes


def find_branch(facts: Recomputation) -> Branch | None:
    """The branch above the lines that ran in one of the two runs only; else one left to chance."""
    if facts.forward and facts.again:
        for code, line in sorted(facts.forward ^ facts.again, key=lambda one: one[1]):
            tree = tree_of(code.co_filename)
            function = function_at(tree, line) if tree is not None else None
            found = _decision(tree, function, line) if tree is not None and function else None
            if found is not None:
                return found
    return next((one for one in _decisions(facts) if one.chance is not None), None)


def _decision(tree: SourceTree, function: Function, line: int) -> Branch | None:
    """The nearest decision that holds the line, or leaves the function before it."""
    found = [
        one
        for one in _conditions(function)
        if one.lineno <= line <= (one.end_lineno or one.lineno)
        or (one.lineno < line and isinstance(one, ast.If) and _leaves(one))
    ]
    branches = [_branch(tree, one) for one in found]
    drawn = [one for one in branches if one.chance is not None]
    chosen = drawn or branches
    return chosen[-1] if chosen else None


def _decisions(facts: Recomputation) -> Iterator[Branch]:
    for tree, function in facts.trees:
        for one in _conditions(function):
            yield _branch(tree, one)


def _conditions(function: Function) -> list[ast.If | ast.IfExp | ast.While]:
    found = [one for one in ast.walk(function) if isinstance(one, ast.If | ast.IfExp | ast.While)]
    return sorted(found, key=lambda one: one.lineno)


def _leaves(statement: ast.If) -> bool:
    return isinstance(statement.body[-1], ast.Return | ast.Continue | ast.Break)


def _branch(tree: SourceTree, one: ast.If | ast.IfExp | ast.While) -> Branch:
    calls = [part for part in ast.walk(one.test) if isinstance(part, ast.Call)]
    drawn = [part for part in calls if (qualified_name(tree, part.func) or "").startswith(_CHANCE)]
    return Branch(tree, one.test, drawn[0] if drawn else None)


def find_write(facts: Recomputation) -> StateWrite | None:
    """The first statement inside that writes what the block also reads and somebody else keeps."""
    found = [one for tree, function in facts.trees for one in _writes(tree, function)]
    read = [one for one in found if _is_read(one)]
    return next(iter(read or found), None)


def _writes(tree: SourceTree, function: Function) -> Iterator[StateWrite]:
    for target, node in [*_bound(function), *_grown(function)]:
        statement = statement_of(tree, node)
        if statement is not None and not _is_local(function, target, node):
            owner = class_at(tree, function.lineno)
            yield StateWrite(tree, function, statement, target, owner.name if owner else "")


def _bound(function: Function) -> Iterator[tuple[str, ast.AST]]:
    """What assignments bind, `self.count = ...` and `cache[key] = ...` included."""
    for statement in function.body:
        for access in accesses(statement):
            if access.kind == "bind":
                yield access.name, access.node


def _grown(function: Function) -> Iterator[tuple[str, ast.AST]]:
    """What `x.append(...)` and its like change."""
    for call in ast.walk(function):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            target = dotted(call.func.value)
            if call.func.attr in _WRITERS and target is not None:
                yield target, call


def _is_local(function: Function, target: str, node: ast.AST) -> bool:
    """Whether the binding ends with the call: a local variable, or something in one."""
    root = target.partition(".")[0]
    parameters = parameters_of(function)
    if root in parameters:
        return root == target and isinstance(node, ast.Name)
    return root in local_names(function)


def parameters_of(function: Function) -> list[str]:
    """The names of a function's parameters, `self` included."""
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _is_read(write: StateWrite) -> bool:
    """Whether the function also reads what it writes."""
    return any(
        access.kind == "read" and access.name.startswith(write.target)
        for statement in write.function.body
        for access in accesses(statement)
        if not isinstance(access.node, ast.Call)
    )
