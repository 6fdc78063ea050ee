"""Where a loss got its shape: the last step before other terms or constants joined it."""

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_operation, shown_site
from gradwright.doctor.evidence.trained import modules_in_sight
from gradwright.doctor.journal import Operation

_ADDS = {"add", "sub", "rsub", "__add__", "__radd__", "__iadd__", "__sub__", "__rsub__", "add_"}
_SCALES = {"mul", "div", "__mul__", "__rmul__", "__truediv__", "__div__", "true_divide", "__imul__"}
_SCALES |= {"__itruediv__", "neg", "__neg__", "squeeze", "unsqueeze", "view", "reshape", "float"}
_STEPS = 1_000


def asks_backward(crash: Crash) -> bool:
    """Whether the exception came through `backward`, not through `grad`."""
    frame = crash.engine_frame
    return frame is not None and frame.code is torch.autograd.backward.__code__


def line_of_shape(crash: Crash, root: torch.Tensor) -> Line | None:
    """The line that computed the values which nobody reduced."""
    operation = crash.journal.operations.of(root)
    if operation is None or operation.source:
        return _of_graph(crash, root)
    for _ in range(_STEPS):
        inner = _carries_shape(crash, operation)
        if inner is None:
            break
        operation = inner
    line = line_of_operation(crash.journal, operation)
    return _outside_networks(crash, operation, line)


def _carries_shape(crash: Crash, operation: Operation) -> Operation | None:
    """The one input whose shape a sum or a scaling only passed on; None where it was made."""
    if operation.name not in _ADDS | _SCALES:
        return None
    found = [crash.journal.operations[index] for index in operation.parents]
    inputs = [one for one in found if one is not None]
    wide = [one for one in inputs if _elements(one) > 1]
    trained = [one for one in wide if one.requires_grad and not one.source]
    if not trained:
        return None
    if operation.name in _ADDS:
        reduced = any(one.requires_grad and _elements(one) == 1 for one in inputs)
        alone = len(wide) == 1
        return (
            trained[-1]
            if (reduced or alone) and _elsewhere(crash, operation, trained[-1])
            else None
        )
    return trained[-1] if len(wide) == 1 and _elsewhere(crash, operation, trained[-1]) else None


def _elements(operation: Operation) -> int:
    count = 1
    for size in operation.shape:
        count *= size
    return count


def _elsewhere(crash: Crash, outer: Operation, inner: Operation) -> bool:
    """Whether two operations lie on different lines: on one line the whole of it is the place."""
    stack = crash.journal.places.stack
    here, there = shown_site(stack(outer.place)), shown_site(stack(inner.place))
    return here is not None and there is not None and here != there


def _of_graph(crash: Crash, root: torch.Tensor) -> Line | None:
    if root.grad_fn is None:
        return None
    site = shown_site(crash.journal.stack_of_node(root.grad_fn._sequence_nr()))
    return Line(site) if site is not None else None


def _outside_networks(crash: Crash, operation: Operation, line: Line | None) -> Line | None:
    """Where a network's own forward made the shape, the loss is missing after its call."""
    stack = crash.journal.places.stack(operation.place)
    forwards = crash.once(_network_forwards)
    if _reduces(operation.name) or not any(site.code in forwards for site in stack[:1]):
        return line
    outer = next((site for site in stack if site.code not in forwards), None)
    return Line(outer) if outer is not None else line


def _network_forwards(crash: Crash) -> set[object]:
    """The `forward` functions of modules in sight that have parameters."""
    found: set[object] = set()
    for _, module in modules_in_sight(crash):
        for one in module.modules():
            if next(one.parameters(), None) is not None:
                found.add(getattr(type(one).forward, "__code__", None))
    return found


def _reduces(name: str) -> bool:
    """Whether a torch function takes `reduction`: a loss."""
    function = getattr(torch.nn.functional, name, None)
    code = getattr(function, "__code__", None)
    return code is not None and "reduction" in code.co_varnames
