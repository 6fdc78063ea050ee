"""Make floating point numbers of integers before gradients are asked for."""

import ast

import torch

from gradwright.diagnostic import Fix
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.integers import AskedIntegers
from gradwright.doctor.evidence.lines import line_of_operation
from gradwright.doctor.repairs.conversion import conversion, made_as
from gradwright.doctor.syntax import (
    Edits,
    append_method,
    dotted,
    reads_of,
    replace_expression,
    replace_statement,
    scope_of,
    set_keyword,
    statement_of,
    torch_name,
)


def fixes_for_integers(crash: Crash, asked: AskedIntegers) -> tuple[Fix, ...]:
    """Where the integers are made, unless they are needed there; where gradients are asked for."""
    wanted = str(torch.get_default_dtype())
    fixes = []
    there, here = _where_made(crash, asked, wanted), _where_asked(asked, wanted)
    if there:
        fixes.append(Fix("make floating point numbers where the tensor is made:", there))
    if here and asked.is_parameter:
        fixes.append(Fix("leave out parameters that hold integers:", here))
    elif here:
        fixes.append(Fix("make floating point numbers where gradients are asked for:", here))
    return tuple(fixes)


def _where_made(crash: Crash, asked: AskedIntegers, wanted: str) -> Edits | None:
    """At the factory that made integers, or at the last operation on them."""
    source = asked.source
    if asked.made is None or source is None or asked.needed or asked.is_parameter:
        return None
    if source is asked.entry:
        return made_as(asked.made, wanted)
    line = line_of_operation(crash.journal, source)
    tree, expression = (line.tree, line.expression) if line is not None else (None, None)
    if tree is None or expression is None or line == asked.line:
        return None
    return append_method(tree, expression, f".{conversion(wanted)}")


def _where_asked(asked: AskedIntegers, wanted: str) -> Edits | None:
    tree, asking = asked.tree, asked.asking
    if tree is None or asking is None:
        return None
    if asked.receiver is None:
        module = torch_name(tree)
        if not asked.makes_it or module is None or not isinstance(asking, ast.Call):
            return None
        return set_keyword(tree, asking, "dtype", wanted.replace("torch", module, 1))
    if asked.is_parameter:
        return _if_floating(asked)
    if isinstance(asking, ast.Call) and not isinstance(tree.parents[asking], ast.Expr):
        return append_method(tree, asked.receiver, f".{conversion(wanted)}")
    return _bound_anew(asked, wanted)


def _if_floating(asked: AskedIntegers) -> Edits | None:
    """`p.requires_grad = p.is_floating_point() or p.is_complex()`."""
    tree, asking, name = asked.tree, asked.asking, dotted(asked.receiver or ast.Pass())
    if tree is None or asking is None or name is None or not _asks_plainly(asked):
        return None
    test = f"{name}.is_floating_point() or {name}.is_complex()"
    if isinstance(asking, ast.Call):
        return replace_expression(tree, asking, f"{name}.requires_grad_({test})")
    statement = statement_of(tree, asking)
    assert isinstance(statement, ast.Assign)
    return replace_expression(tree, statement.value, test)


def _bound_anew(asked: AskedIntegers, wanted: str) -> Edits | None:
    """`x.requires_grad_()` to `x = x.float().requires_grad_()`, where `x` is read from then on."""
    tree, asking, name = asked.tree, asked.asking, dotted(asked.receiver or ast.Pass())
    if tree is None or asking is None or name is None or not _asks_plainly(asked):
        return None
    statement = statement_of(tree, asking)
    later = reads_of(scope_of(tree, asking), name)
    if statement is None or all(tree.start(one) < tree.end(statement) for one in later):
        return None
    return replace_statement(
        tree, statement, f"{name} = {name}.{conversion(wanted)}.requires_grad_()"
    )


def _asks_plainly(asked: AskedIntegers) -> bool:
    """`x.requires_grad_()`, with True or nothing, or `x.requires_grad = True`."""
    asking = asked.asking
    if isinstance(asking, ast.Call):
        values = [*asking.args, *(keyword.value for keyword in asking.keywords)]
    else:
        statement = statement_of(asked.tree, asking) if asked.tree and asking else None
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        values = [statement.value]
    return all(isinstance(one, ast.Constant) and one.value is True for one in values)
