"""When an expression needs parentheses in a place."""

from __future__ import annotations

import ast
from enum import IntEnum

from gradwright.doctor.syntax.changes import Unsafe
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import enclosing


class Level(IntEnum):
    """How tightly an expression binds, loosest first, after Python's reference."""

    TUPLE = 0  # also `yield`, a starred element, `:=`
    TEST = 1  # lambda, if-else
    OR = 2
    AND = 3
    NOT = 4
    COMPARE = 5
    BIT_OR = 6
    BIT_XOR = 7
    BIT_AND = 8
    SHIFT = 9
    SUM = 10
    PRODUCT = 11
    SIGN = 12
    POWER = 13
    AWAIT = 14
    PRIMARY = 15  # names, calls, subscripts, brackets


_BINARY: dict[type[ast.operator], Level] = {
    ast.BitOr: Level.BIT_OR,
    ast.BitXor: Level.BIT_XOR,
    ast.BitAnd: Level.BIT_AND,
    ast.LShift: Level.SHIFT,
    ast.RShift: Level.SHIFT,
    ast.Add: Level.SUM,
    ast.Sub: Level.SUM,
    ast.Pow: Level.POWER,
}
_Brackets = (
    ast.List
    | ast.Set
    | ast.Dict
    | ast.Subscript
    | ast.GeneratorExp
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
)
_KINDS: tuple[tuple[type[ast.expr] | tuple[type[ast.expr], ...], Level], ...] = (
    ((ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred), Level.TUPLE),
    ((ast.Lambda, ast.IfExp), Level.TEST),
    (ast.Compare, Level.COMPARE),
    (ast.Await, Level.AWAIT),
)


def level_of_operator(operator: ast.operator) -> Level:
    """How tightly a binary operator binds."""
    return _BINARY.get(type(operator), Level.PRODUCT)


def level_of(text: str) -> Level:
    """How tightly an expression binds as written. Raises Unsafe if the text is not one.

    Text over several lines that is not in brackets binds loosest: it needs parentheses.
    """
    text = text.strip()
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        return _level_inside_parentheses(text, error)
    return Level.PRIMARY if _in_parentheses(text) else _level_of_node(node)


def _in_parentheses(text: str) -> bool:
    """True for `(a + b)` and `(a, b)`, false for `(a), (b)`: a name before makes it one call."""
    if not text.startswith("("):
        return False
    try:
        node = ast.parse(f"f{text}", mode="eval").body
    except SyntaxError:
        return True  # `(yield)`, `(a := b)` and what else a call does not take
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _level_inside_parentheses(text: str, error: SyntaxError) -> Level:
    try:
        ast.parse(f"({text}\n)", mode="eval")
    except SyntaxError:
        raise Unsafe from error
    return Level.TUPLE


def _level_of_node(node: ast.expr) -> Level:
    if isinstance(node, ast.BinOp):
        return level_of_operator(node.op)
    if isinstance(node, ast.BoolOp):
        return Level.OR if isinstance(node.op, ast.Or) else Level.AND
    if isinstance(node, ast.UnaryOp):
        return Level.NOT if isinstance(node.op, ast.Not) else Level.SIGN
    if isinstance(node, ast.Tuple):
        return Level.TUPLE
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | complex):
        return Level.PRIMARY if isinstance(node.value, bool) else Level.AWAIT  # `1.real`
    return next((level for kinds, level in _KINDS if isinstance(node, kinds)), Level.PRIMARY)


def fitted(text: str, level: Level) -> str:
    """The expression, in parentheses if it binds looser than `level`."""
    return text if level_of(text) >= level else f"({text})"


def needed_level(tree: SourceTree, node: ast.expr) -> Level:
    """How tightly an expression must bind to stand where `node` stands.

    Raises Unsafe inside f-strings, whose quotes the new text may break.
    """
    if enclosing(tree, node, ast.JoinedStr) is not None:
        raise Unsafe
    if outer_bounds(tree, node)[0] < tree.start(node):
        return Level.TUPLE  # in parentheses already
    parent = tree.parents[node]
    if isinstance(parent, ast.BinOp):
        level = level_of_operator(parent.op)
        loose_side = parent.right if isinstance(parent.op, ast.Pow) else parent.left
        return level if node is loose_side else Level(level + 1)
    if isinstance(parent, ast.UnaryOp):
        return Level.NOT if isinstance(parent.op, ast.Not) else Level.SIGN
    if isinstance(parent, ast.BoolOp):
        return Level.AND if isinstance(parent.op, ast.Or) else Level.NOT
    return _needed_in_other(parent, node)


def _needed_in_other(parent: ast.AST, node: ast.expr) -> Level:
    if isinstance(parent, ast.Attribute | ast.Await):
        return Level.PRIMARY
    if isinstance(parent, ast.Call):
        return Level.PRIMARY if node is parent.func else Level.TEST
    if isinstance(parent, ast.Subscript):
        return Level.PRIMARY if node is parent.value else Level.TEST
    if isinstance(parent, ast.Compare | ast.Starred):
        return Level.BIT_OR
    if isinstance(parent, ast.IfExp | ast.comprehension):
        return Level.OR
    if isinstance(parent, ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
        return Level.TUPLE
    return Level.TEST


def outer_bounds(tree: SourceTree, node: ast.expr) -> tuple[int, int]:
    """Offsets of an expression with the parentheses that are its own, if any."""
    start, end = tree.start(node), tree.end(node)
    low, high = _room(tree, node)
    while True:
        before = tree.text[low:start].rstrip(" \t\r\n\f\\")
        after = tree.text[end:high].lstrip(" \t\r\n\f\\")
        if not before.endswith("(") or not after.startswith(")"):
            return start, end
        start, end = low + len(before) - 1, high - len(after) + 1


def _room(tree: SourceTree, node: ast.expr) -> tuple[int, int]:
    """The bounds within which parentheses can only belong to the expression."""
    parent = _holder(tree, node)
    if parent is None:
        return tree.start(node), tree.end(node)
    low, high = tree.start(parent), tree.end(parent)
    if isinstance(parent, ast.Call):
        if node is parent.func:
            return low, tree.text.rindex("(", low, _first_argument(tree, parent))
        return _after_function(tree, parent), high - 1
    if isinstance(parent, ast.Tuple):
        closed = _in_parentheses(tree.text[low:high])
        return low + closed, high - closed
    if isinstance(parent, _Brackets):
        return low + (not isinstance(parent, ast.Subscript)), high - 1
    return low, high


def _holder(tree: SourceTree, node: ast.expr) -> ast.expr | ast.stmt | None:
    """The node around an expression, if it is one whose own brackets are known."""
    parent = tree.parents[node]
    if isinstance(parent, ast.keyword | ast.comprehension):
        parent = tree.parents[parent]
    if isinstance(parent, ast.expr):
        return parent
    if isinstance(parent, ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
        return parent
    return None


def _first_argument(tree: SourceTree, call: ast.Call) -> int:
    arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return min([*map(tree.start, arguments), tree.end(call)])


def _after_function(tree: SourceTree, call: ast.Call) -> int:
    """Offset just after the parenthesis that opens the arguments."""
    return tree.text.index("(", tree.end(call.func)) + 1
