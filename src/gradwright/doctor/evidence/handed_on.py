"""A helper that was to detach a state and handed it back unchanged."""

import ast
from dataclasses import dataclass

from gradwright.diagnostic import Span
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, statement_of_site, value_of
from gradwright.doctor.evidence.reuse import Reuse
from gradwright.doctor.syntax.names import assigned_names, dotted, reads_in
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import scope_of, span_of


@dataclass(frozen=True, slots=True)
class HandedOn:
    """The line of the helper that let the graph through."""

    span: Span
    text: str
    name: str  # of the helper
    tree: SourceTree
    definition: ast.FunctionDef
    returned: ast.Name


def handed_on_unchanged(crash: Crash, reuse: Reuse, origin: Origin) -> HandedOn | None:
    """A statement `state = helper(state)` between birth and reuse.

    The graph proves that the helper did not detach: what it was given and what it gave back hang
    on the same nodes.
    """
    found = statement_of_site(origin.built)
    if found is None or origin.built is None or not origin.name:
        return None
    tree, statement = found
    for node in ast.walk(scope_of(tree, statement)):
        call = _passing(node, origin.name)
        if call is None or node is statement:
            continue
        returned = _returned_argument(crash, origin.built.file, call)
        if returned is not None:
            return returned
    return None


def _passing(node: ast.AST, name: str) -> ast.Call | None:
    """The call in `state = helper(state)`."""
    if not isinstance(node, ast.Assign) or name not in assigned_names(node):
        return None
    call = node.value
    if isinstance(call, ast.Call) and name in reads_in(call) and len(assigned_names(node)) == 1:
        return call if any(dotted(argument) == name for argument in call.args) else None
    return None


def _returned_argument(crash: Crash, file: str, call: ast.Call) -> HandedOn | None:
    """The `return` of the called user function that gives its argument back."""
    function = value_of(dotted(call.func) or "", crash, file) or _global(crash, call)
    code = getattr(function, "__code__", None)
    if code is None or not crash.journal.is_user(code.co_filename):
        return None
    tree = tree_of(code.co_filename)
    definition = _definition(tree, code.co_firstlineno) if tree is not None else None
    if tree is None or definition is None:
        return None
    arguments = {argument.arg for argument in definition.args.args}
    for node in ast.walk(definition):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(value, ast.Name) and value.id in arguments:
            assert isinstance(node, ast.Return)
            text = f"`{definition.name}` hands its argument back unchanged, its graph included"
            name = dotted(call.func) or definition.name
            return HandedOn(span_of(tree, node), text, name, tree, definition, value)
    return None


def _definition(tree: SourceTree, line: int) -> ast.FunctionDef | None:
    for node in ast.walk(tree.root):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == line:
                return node
    return None


def _global(crash: Crash, call: ast.Call) -> object:
    name = dotted(call.func) or ""
    for frame in reversed(crash.user_frames):
        if name in frame.frame.f_globals:
            return frame.frame.f_globals[name]
    return None
