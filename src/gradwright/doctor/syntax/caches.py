"""Values kept on an object: tests that reuse them, methods that reset them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradwright.doctor.syntax.changes import Change, Unsafe, rewrite
from gradwright.doctor.syntax.names import dotted
from gradwright.doctor.syntax.precedence import fitted, needed_level
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import Function, ancestors, decorators_of

_EMPTY = ("list", "dict", "set", "tuple", "deque", "Counter", "defaultdict", "OrderedDict")
_FRESH = ("zeros", "ones", "full", "empty", "zeros_like", "ones_like", "new_zeros")


@rewrite
def guard_cache_test(tree: SourceTree, class_node: ast.ClassDef, attribute: str) -> list[Change]:
    """Reuse a tensor kept in `self.<attribute>` only if it carries no graph.

    `if self._c is not None:` gets `and not self._c.requires_grad`; `is None`, `hasattr` and
    `key in self._c` likewise. Refuses if the class has no such test.
    """
    name = f"self.{attribute}"
    changes = [
        change
        for test in _tests(class_node)
        for node in ast.walk(test)
        if isinstance(node, ast.expr) and (change := _guarded(tree, node, name)) is not None
    ]
    if not changes:
        raise Unsafe
    return changes


def _tests(class_node: ast.ClassDef) -> Iterator[ast.expr]:
    for node in ast.walk(class_node):
        if isinstance(node, ast.If | ast.IfExp):
            yield node.test


def _guarded(tree: SourceTree, node: ast.expr, name: str) -> Change | None:
    """The change of one comparison that asks whether there is a value."""
    found = _presence(tree, node, name)
    if found is None:
        return None
    value, present = found
    negated = isinstance(parent := tree.parents[node], ast.UnaryOp) and isinstance(
        parent.op, ast.Not
    )
    whole: ast.expr = parent if negated and isinstance(parent, ast.UnaryOp) else node
    if _negated_above(tree, whole):
        raise Unsafe
    text = tree.source(whole)
    reusable = present != negated
    new = (
        f"{text} and not {value}.requires_grad" if reusable else f"{text} or {value}.requires_grad"
    )
    level = needed_level(tree, whole)
    joined = isinstance(outer := tree.parents[whole], ast.BoolOp) and (
        isinstance(outer.op, ast.And) == reusable
    )
    return Change(tree.start(whole), tree.end(whole), new if joined else fitted(new, level))


def _negated_above(tree: SourceTree, node: ast.expr) -> bool:
    """True if the answer is turned around or compared further out."""
    outer = [one for one in ancestors(tree, node) if isinstance(one, ast.expr)]
    kinds = ast.UnaryOp | ast.Compare | ast.Call
    inside = [one for one in outer if tree.start(one) <= tree.start(node)]
    return any(isinstance(one, kinds) for one in inside)


def _presence(tree: SourceTree, node: ast.expr, name: str) -> tuple[str, bool] | None:
    """What the test asks for, as code, and whether it is true if that is there."""
    if isinstance(node, ast.Call) and dotted(node.func) == "hasattr" and len(node.args) == 2:
        key = node.args[1]
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        return (name, True) if f"{dotted(node.args[0])}.{key.value}" == name else None
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    operator, right = node.ops[0], node.comparators[0]
    is_none = isinstance(right, ast.Constant) and right.value is None
    if dotted(node.left) == name and is_none and isinstance(operator, ast.Is | ast.IsNot):
        return name, isinstance(operator, ast.IsNot)
    if dotted(right) == name and isinstance(operator, ast.In | ast.NotIn):
        if any(isinstance(one, ast.Call | ast.NamedExpr) for one in ast.walk(node.left)):
            return None
        return f"{name}[{tree.source(node.left)}]", isinstance(operator, ast.In)
    return None


def reset_methods(class_node: ast.ClassDef, attribute: str) -> list[str]:
    """Methods without required arguments that give `self.<attribute>` a fresh value.

    Fresh is a constant, an empty container, a tensor of zeros; or `self.<attribute>.clear()`.
    """
    methods = [one for one in class_node.body if isinstance(one, ast.FunctionDef)]
    return [
        method.name
        for method in methods
        if not decorators_of(method)
        and not method.name.startswith("__")
        and _callable_plainly(method)
        and any(_resets(node, attribute) for node in ast.walk(method))
    ]


def _callable_plainly(method: Function) -> bool:
    arguments = method.args
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    keywords = [one for one in arguments.kw_defaults if one is None]
    return bool(positional) and required <= 1 and not keywords


def _resets(node: ast.AST, attribute: str) -> bool:
    name = f"self.{attribute}"
    if isinstance(node, ast.Assign):
        return any(dotted(target) == name for target in node.targets) and _is_fresh(node.value)
    if isinstance(node, ast.Delete):
        bases = [one.value if isinstance(one, ast.Subscript) else one for one in node.targets]
        return any(dotted(base) == name for base in bases)
    called = node.func if isinstance(node, ast.Call) else None
    return called is not None and dotted(called) == f"{name}.clear"


def _is_fresh(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_fresh(value.operand)
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return all(_is_fresh(one) for one in value.elts)
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.Call):
        name = (dotted(value.func) or "").rpartition(".")[2]
        return name in _FRESH or (name in _EMPTY and not value.keywords)
    return isinstance(value, ast.Constant)
