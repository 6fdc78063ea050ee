"""A fix for a state of a generator: its value goes on behind the `yield`."""

import ast
import inspect

from gradwright.diagnostic import Edit
from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.origin import Origin, statement_of_site
from gradwright.doctor.evidence.reuse import Reuse, shared_frame_line
from gradwright.doctor.repairs.detaching import detaching_line
from gradwright.doctor.repairs.state_values import state_value
from gradwright.doctor.syntax.names import assigned_names
from gradwright.doctor.syntax.statements import insert_after
from gradwright.doctor.syntax.tree import SourceTree
from gradwright.doctor.syntax.where import function_at, loops_around, scope_of

Edits = tuple[Edit, ...]


def made_in_generator(origin: Origin) -> bool:
    """Whether the state is a variable of a generator, which keeps it while it waits."""
    found = statement_of_site(origin.built)
    if found is None or origin.built is None:
        return False
    generates = bool(origin.built.code.co_flags & inspect.CO_GENERATOR)
    return generates and origin.name.rpartition(".")[2] in assigned_names(found[1])


def detached_after_yield(crash: Crash, reuse: Reuse, origin: Origin) -> Edits | None:
    """`state = state.detach()` behind the only `yield`, if each backward takes one value."""
    assert origin.built is not None
    found = statement_of_site(origin.built)
    place = _only_yield(*found, origin.built.line) if found is not None else None
    if found is None or place is None or not _one_for_each_backward(crash, reuse):
        return None
    name = origin.name.rpartition(".")[2]
    line = detaching_line(name, state_value(crash, origin, name), optional=False)
    return insert_after(found[0], place, [line]) if line is not None else None


def _only_yield(tree: SourceTree, made: ast.stmt, line: int) -> ast.stmt | None:
    """The statement that yields, below the one that makes the state."""
    function = function_at(tree, line)
    yields = [
        node
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Yield | ast.YieldFrom) and scope_of(tree, node) is function
    ]
    statement = tree.parents.get(yields[0]) if len(yields) == 1 else None
    below = isinstance(statement, ast.Expr) and statement.lineno > made.lineno
    return statement if isinstance(statement, ast.Expr) and below else None


def _one_for_each_backward(crash: Crash, reuse: Reuse) -> bool:
    """Whether the consumer asks for a value in the same loop in which it goes backward."""
    older = crash.journal.stack_of_node(reuse.joints[0].carried._sequence_nr())
    parted = shared_frame_line(older, crash.journal.places.stack(reuse.call.place))
    if parted is None:
        return False
    asking, backward = statement_of_site(parted[0]), statement_of_site(parted[1])
    if asking is None or backward is None:
        return False
    loops = loops_around(*asking)
    header = [asking[1]] if isinstance(asking[1], ast.For) else []
    return bool(loops or header) and [*header, *loops] == loops_around(*backward)
