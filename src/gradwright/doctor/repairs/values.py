"""Fixes for values that left torch and came back: let the tensors themselves go that way."""

import ast

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.escapes import Passage
from gradwright.doctor.repairs.cuts import has_numbers, is_list, module_of
from gradwright.doctor.syntax.changes import combine
from gradwright.doctor.syntax.expressions import replace_expression
from gradwright.doctor.syntax.imports import imported_names, qualified_name
from gradwright.doctor.syntax.names import assigned_names, dotted, reads_in
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import enclosing, scope_of, statement_at, statement_of

Edits = tuple[Edit, ...]
_MAKERS = {"tensor", "as_tensor", "Tensor", "FloatTensor", "DoubleTensor", "asarray", "from_numpy"}
_VALUES = {"item", "tolist", "numpy"}
_ADDS = {"append", "extend", "insert", "add"}


def fixes_for_passage(crash: Crash, passage: Passage) -> tuple[Fix, ...]:
    """Let the tensors themselves go where their values went, if that is all there was to it."""
    edits = _values_kept(crash, passage)
    if edits:
        return (Fix("keep the tensors instead of their values", edits),)
    return (Fix("do this computation with torch operations on the tensors themselves"),)


def _values_kept(crash: Crash, passage: Passage) -> Edits | None:
    back = crash.journal.places.stack(passage.back.place)
    tree = tree_of(back[0].file) if back else None
    if tree is None:
        return None
    lines = _lines_of_escapes(crash, passage, tree)
    makers = (_maker_at(tree, line) for line in (back[0].line, *lines))
    maker = next((one for one in makers if one is not None), None)
    if maker is None:
        return None
    calls = [call for line in lines for call in _value_calls(tree, line)]
    inside = [call for call in calls if _within(tree, call, maker)]
    outside = [] if inside else _feeding(tree, calls, maker)
    implicit = any(escape.name.startswith("__") for escape in passage.escapes)
    if not (inside or outside or (implicit and is_list(tree, maker.args[0]))):
        return None
    if (outside and _uses_numbers_only(tree, maker)) or has_numbers(maker.args[0]):
        return None
    value = _source_without(tree, maker.args[0], inside)
    if is_list(tree, maker.args[0]):
        value = f"{module_of(tree, maker)}.stack({value})"
    edits = [replace_expression(tree, maker, value)]
    edits += [replace_expression(tree, call, _bare(tree, call)) for call in outside]
    return combine(tree, *edits)


def _lines_of_escapes(crash: Crash, passage: Passage, tree: SourceTree) -> list[int]:
    stacks = [crash.journal.places.stack(escape.place) for escape in passage.escapes]
    found = [stack[0].line for stack in stacks if stack and stack[0].file == tree.file]
    return sorted(set(found))


def _feeding(tree: SourceTree, calls: list[ast.Call], maker: ast.Call) -> list[ast.Call]:
    """Those calls whose values flow into the maker through variables of its function."""
    scope = scope_of(tree, maker)
    names = {name.partition(".")[0] for name in reads_in(maker.args[0])}
    statements = [node for node in ast.walk(scope) if isinstance(node, ast.stmt)]
    for _ in range(4):  # a few steps of plain arithmetic between them
        for statement in statements:
            if names.intersection(_filled(statement)):
                names |= {name.partition(".")[0] for name in reads_in(statement)}
    return [call for call in calls if _fills(tree, call, names, scope)]


def _fills(tree: SourceTree, call: ast.Call, names: set[str], scope: ast.AST) -> bool:
    statement = statement_of(tree, call)
    if statement is None or scope_of(tree, call) is not scope:
        return False
    return bool(names.intersection(_filled(statement)))


def _filled(statement: ast.stmt) -> list[str]:
    """The variables a statement assigns or adds to."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        owner = dotted(value.func.value)
        return [owner] if owner is not None and value.func.attr in _ADDS else []
    return assigned_names(statement)


def _uses_numbers_only(tree: SourceTree, maker: ast.Call) -> bool:
    """Whether the function computes with numpy or math, which do not take tensors with a graph."""
    names = {
        name
        for name, full in imported_names(tree).items()
        if full.partition(".")[0] in ("numpy", "math", "scipy", "statistics")
    }
    reads = {name.partition(".")[0] for name in reads_in(scope_of(tree, maker))}
    return bool(names & reads)


def _maker_at(tree: SourceTree, line: int) -> ast.Call | None:
    """The call on a line that makes a tensor from values."""
    statement = statement_at(tree, line)
    for node in ast.walk(statement) if statement is not None else ():
        if isinstance(node, ast.Call) and node.args:
            name = (qualified_name(tree, node.func) or "").rpartition(".")[2]
            if name in _MAKERS:
                return node
    return None


def _value_calls(tree: SourceTree, line: int) -> list[ast.Call]:
    """`x.item()`, `float(x)`, `x.detach().cpu().numpy()` on a line, the outermost of each chain."""
    statement = statement_at(tree, line)
    found = [
        node
        for node in (ast.walk(statement) if statement is not None else ())
        if isinstance(node, ast.Call) and _takes_value(node)
    ]
    return [one for one in found if enclosing(tree, one, ast.Call) not in found]


def _takes_value(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _VALUES
    return isinstance(call.func, ast.Name) and call.func.id == "float" and len(call.args) == 1


def _bare(tree: SourceTree, call: ast.expr) -> str:
    """The tensor whose value an expression takes."""
    node = call
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            if node.func.attr not in _VALUES | {"detach", "cpu"}:
                break
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id == "float":
            node = node.args[0]
        else:
            break
    return tree.source(node)


def _within(tree: SourceTree, inner: ast.expr, outer: ast.expr) -> bool:
    return tree.start(outer) <= tree.start(inner) and tree.end(inner) <= tree.end(outer)


def _source_without(tree: SourceTree, node: ast.expr, calls: list[ast.Call]) -> str:
    """The text of `node` with each of `calls` replaced by its tensor."""
    text, start = tree.source(node), tree.start(node)
    for call in sorted(calls, key=tree.start, reverse=True):
        at, end = tree.start(call) - start, tree.end(call) - start
        text = text[:at] + _bare(tree, call) + text[end:]
    return text
