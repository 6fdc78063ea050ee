"""Where a loss stayed complex."""

from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash
from gradwright.doctor.evidence.lines import Line, line_of_operation
from gradwright.doctor.journal import Operation

_SQUARES = {"pow", "__pow__", "square", "float_power", "pow_", "square_"}
_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Square:
    """The power or product of complex values below the loss."""

    line: Line
    born: Line | None  # where the values became complex


def find_square(crash: Crash, root: torch.Tensor) -> Square | None:
    """The last squaring of complex values that the loss was computed from."""
    operations = crash.journal.operations
    start = operations.of(root)
    if start is None:
        return None
    squares: list[Operation] = []
    born: list[Operation] = []
    for number, one in enumerate(operations.ancestors(start)):
        if number > _STEPS:
            break
        if not one.dtype.is_complex or one.source:
            continue
        if one.name in _SQUARES or _is_self_product(one):
            squares.append(one)
        parents = [operations[index] for index in one.parents]
        if not any(parent.dtype.is_complex for parent in parents if parent is not None):
            born.append(one)
    line = line_of_operation(crash.journal, squares[0]) if squares else None
    if line is None:
        return None
    first = line_of_operation(crash.journal, born[0]) if born else None
    return Square(line, first if first is None or first.site != line.site else None)


def _is_self_product(operation: Operation) -> bool:
    """`gap * gap`: a product with one recorded input."""
    return operation.name in ("mul", "__mul__") and len(operation.parents) == 1
