"""Fixes for a loss that is a constant in some steps."""

import ast

import torch

from gradwright.diagnostic import Edit, Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.asked import asking_call, loss_name
from gradwright.doctor.evidence.spans import span_of_operation
from gradwright.doctor.journal import Operation, Site
from gradwright.doctor.kinds import is_a
from gradwright.doctor.repairs.cuts import expression_of
from gradwright.doctor.syntax.expressions import replace_expression
from gradwright.doctor.syntax.guards import guard
from gradwright.doctor.syntax.imports import qualified_name
from gradwright.doctor.syntax.names import assigned_names, dotted
from gradwright.doctor.syntax.tree import SourceTree, tree_of
from gradwright.doctor.syntax.where import Function, function_at, sibling_around, statement_at

Edits = tuple[Edit, ...]
_ZEROS = {"zeros", "tensor", "new_zeros", "new_tensor", "zeros_like", "scalar_tensor", "full"}


def fixes_for_constant(crash: Crash, operation: Operation | None, site: Site) -> tuple[Fix, ...]:
    """A zero that hangs on the graph; or no backward for such a batch."""
    found = []
    zero = _zero_with_graph(crash, operation, site)
    if zero is not None:
        found.append(Fix("return a zero that hangs on the graph", zero))
    skipped = _skipped(crash)
    if skipped is not None:
        found.append(Fix("leave such a batch out", skipped))
    return tuple(found) or (Fix("skip backward where the loss does not require grad"),)


def _zero_with_graph(crash: Crash, operation: Operation | None, site: Site) -> Edits | None:
    """`torch.zeros(())` as `features.sum() * 0.0`."""
    if operation is None:
        return None
    found = expression_of(span_of_operation(crash.journal, operation))
    if found is None or not isinstance(found[1], ast.Call) or operation.name not in _ZEROS:
        return None
    tree, node = found
    name = _running(crash, tree, site) or _finished(crash, tree, node, site)
    return replace_expression(tree, node, f"{name}.sum() * 0.0") if name else None


def _running(crash: Crash, tree: SourceTree, site: Site) -> str | None:
    """A variable of the function that has a graph, where the function is still on the stack."""
    for frame in crash.user_frames:
        if frame.code is not site.code:
            continue
        here = statement_at(tree, site.line)
        for name, value in frame.frame.f_locals.items():
            has_graph = is_a(value, torch.Tensor) and value.grad_fn is not None
            if has_graph and here is not None and _made_before(tree, frame.line, name, here):
                return name
    return None


def _made_before(tree: SourceTree, line: int, name: str, here: ast.stmt) -> bool:
    """Whether the same run through the block assigned the name before `here`."""
    scope: ast.AST = function_at(tree, line) or tree.root
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and name in assigned_names(node):
            beside = sibling_around(tree, node, here)
            if beside is not None and beside is not node and node.lineno < here.lineno:
                return True
    return False


def _finished(crash: Crash, tree: SourceTree, node: ast.expr, site: Site) -> str | None:
    """An argument of the function that had a graph in earlier steps, or lends its device."""
    function = function_at(tree, site.line)
    if function is None:
        return None
    arguments = [one.arg for one in [*function.args.posonlyargs, *function.args.args]]
    for name in [*_recorded(crash, site), *_lenders(node)]:
        if name in arguments and not _rebound(function, name, site.line):
            return name
    return None


def _recorded(crash: Crash, site: Site) -> list[str]:
    """Names read by operations of the function that had a graph from outside it."""
    operations = crash.journal.operations
    names: list[str] = []
    own = [one for one in operations.entries if one.code is site.code and one.requires_grad]
    for operation in own[:200]:
        found = expression_of(span_of_operation(crash.journal, operation))
        operands = [] if found is None else _operands(*found)
        for operand, index in zip(operands, operation.parents, strict=False):
            parent = operations[index]
            outside = parent is not None and parent.code is not site.code
            if outside and parent is not None and parent.requires_grad:
                names += [operand.id] if isinstance(operand, ast.Name) else []
    return names


def _operands(tree: SourceTree, node: ast.expr) -> list[ast.expr]:
    """The tensors of an operation, in the order torch gets them."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return []
    owner = node.func.value
    is_module = (qualified_name(tree, owner) or "").startswith("torch")
    return [*node.args] if is_module else [owner, *node.args]


def _lenders(node: ast.expr) -> list[str]:
    """`z` in `torch.zeros((), device=z.device)` and `z.new_zeros(())`."""
    names = [dotted(one) or "" for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    return [name.partition(".")[0] for name in names]


def _rebound(function: Function, name: str, line: int) -> bool:
    return any(
        name in assigned_names(one)
        for one in ast.walk(function)
        if isinstance(one, ast.stmt) and one.lineno < line
    )


def _skipped(crash: Crash) -> Edits | None:
    """`if loss.requires_grad:` around the backward."""
    found, frame, name = asking_call(crash), crash.raised_at, loss_name(crash)
    if found is None or frame is None or not name:
        return None
    tree = tree_of(frame.file)
    statement = statement_at(tree, frame.line) if tree is not None else None
    if tree is None or not isinstance(statement, ast.Expr) or statement.value is not found[1]:
        return None
    if dotted(ast.parse(name, mode="eval").body) is None:
        return None
    return guard(tree, statement, statement, f"{name}.requires_grad")
