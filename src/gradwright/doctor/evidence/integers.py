"""Integers that were asked for gradients: which tensor, and where its integers come from."""

import ast
from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.lines import Line, line_of_frame, line_of_operation
from gradwright.doctor.evidence.values import tensor_in_frame
from gradwright.doctor.journal import Operation
from gradwright.doctor.syntax import SourceTree, argument_of, expression_at, is_named, keyword_of

_SIGNS = ("only Tensors of floating point", "Only Tensors of floating point")
# these give integers for integers, so what they were called on is the tensor to look at
_KEEPING = {"clone", "contiguous", "cpu", "cuda", "detach", "expand", "flatten", "flip", "permute"}
_KEEPING |= {"repeat", "reshape", "roll", "squeeze", "transpose", "unsqueeze", "view", "view_as"}

# torch takes nothing but integers here
_NEED_INTEGERS = {"bincount", "cross_entropy", "ctc_loss", "embedding", "embedding_bag", "gather"}
_NEED_INTEGERS |= {"index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "take"}
_NEED_INTEGERS |= {"index_fill_", "index_put", "index_put_", "index_select", "nll_loss", "one_hot"}
_NEED_INTEGERS |= {"masked_fill", "masked_fill_", "scatter", "scatter_", "scatter_add", "where"}
_NEED_INTEGERS |= {"bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "scatter_add_"}
_NEED_INTEGERS |= {"__and__", "__invert__", "__lshift__", "__or__", "__rshift__", "__xor__"}
_INDEXING = ("__getitem__", "__setitem__")


@dataclass(frozen=True, slots=True)
class AskedIntegers:
    """The program's line that asked, and what is known of the tensor."""

    line: Line
    asking: ast.expr | None  # the call, or `x.requires_grad` that is assigned to
    receiver: ast.expr | None = None  # what gradients are asked for; None if the call makes it
    tensor: torch.Tensor | None = None
    name: str = ""
    entry: Operation | None = None  # what made integers of something else
    made: Line | None = None  # where that was, if on another line
    source: Operation | None = None  # what to convert: the factory, else the last operation
    needed: bool = False  # something else needs the integers of `source`

    @property
    def tree(self) -> SourceTree | None:
        """The parsed file of the asking line."""
        return self.line.tree

    @property
    def is_parameter(self) -> bool:
        """Whether the flag of a parameter is to be set: it was made of integers on purpose."""
        wraps = isinstance(self.asking, ast.Call) and self.receiver in self.asking.args
        return isinstance(self.tensor, torch.nn.Parameter) and not wraps

    @property
    def makes_it(self) -> bool:
        """Whether the call that makes the tensor has the keyword `requires_grad`."""
        call = self.asking
        return isinstance(call, ast.Call) and keyword_of(call, "requires_grad") is not None


def find_integers(crash: Crash) -> AskedIntegers | None:
    """The facts, if torch refused because of the type."""
    frame = crash.raised_at
    if frame is None or not crash.message.startswith(_SIGNS):
        return None
    line = line_of_frame(frame)
    asking = _asking(line)
    receiver = _receiver(line.tree, asking)
    read = _root(receiver) if receiver is not None else _given_to_library(crash, asking)
    tensor = tensor_in_frame(frame, read) if read is not None else None
    if read is None or tensor is None or not is_whole(tensor.dtype):
        return AskedIntegers(line, asking, receiver)
    result = crash.journal.operations.of(tensor)
    entry = _entry(crash, result)
    made = line_of_operation(crash.journal, entry) if entry is not None else None
    if made is not None and (made.site.file, made.site.line) == (line.site.file, line.site.line):
        made = None
    source = entry if entry is not None and not entry.parents else result
    needed = source is not None and _needed_as_integers(crash, source)
    return AskedIntegers(
        line, asking, receiver, tensor, ast.unparse(read), entry, made, source, needed
    )


def is_whole(dtype: torch.dtype) -> bool:
    """Whether a type holds integers or truth values."""
    return not (dtype.is_floating_point or dtype.is_complex)


def _asking(line: Line) -> ast.Call | ast.Attribute | None:
    tree, span = line.tree, line.span
    if tree is None or span.end_column is None:
        return None
    found = expression_at(tree, span.line, span.column, span.end_line or span.line, span.end_column)
    return found if isinstance(found, ast.Call | ast.Attribute) else None


def _receiver(tree: SourceTree | None, asking: ast.expr | None) -> ast.expr | None:
    """`x` of `x.requires_grad_()`, `x.requires_grad = True` and `nn.Parameter(x)`."""
    if isinstance(asking, ast.Attribute):
        return asking.value if asking.attr == "requires_grad" else None
    if tree is None or not isinstance(asking, ast.Call):
        return None
    if isinstance(asking.func, ast.Attribute) and asking.func.attr == "requires_grad_":
        return asking.func.value
    if is_named(tree, asking.func, {"Parameter"}):
        return argument_of(asking, 0) or argument_of(asking, "data")
    return None


def _root(expression: ast.expr) -> ast.expr | None:
    """The variable below calls that keep the type: `x` of `x[1:].clone()`."""
    while not isinstance(expression, ast.Name | ast.Attribute):
        if isinstance(expression, ast.Subscript):
            expression = expression.value
        elif isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
            if expression.func.attr not in _KEEPING:
                return None
            expression = expression.func.value
        else:
            return None
    return expression


def _given_to_library(crash: Crash, asking: ast.expr | None) -> ast.expr | None:
    """The argument of the user's call for which a library's function asked."""
    frame = crash.raised_at
    if frame is None or not isinstance(asking, ast.Call):
        return None
    wanted = _asked_by_library(crash.frames[crash.frames.index(frame) + 1 :])
    given = [*asking.args, *(keyword.value for keyword in asking.keywords)]
    found = (one for one in given if tensor_in_frame(frame, one) is wanted)
    return None if wanted is None else next(found, None)


def _asked_by_library(frames: list[CrashFrame]) -> torch.Tensor | None:
    for frame in reversed(frames):
        line = line_of_frame(frame)
        receiver = _receiver(line.tree, _asking(line))
        read = _root(receiver) if receiver is not None else None
        if read is not None:
            return tensor_in_frame(frame, read)
    return None


def _entry(crash: Crash, result: Operation | None) -> Operation | None:
    """The one operation of the history that made integers of something else, or the last one."""
    if result is None:
        return None
    operations = crash.journal.operations
    entries = []
    for one in operations.ancestors(result):
        parents = [operations[index] for index in one.parents]
        mixed = any(parent is None or is_whole(parent.dtype) for parent in parents)
        if is_whole(one.dtype) and not mixed:
            entries.append(one)
    only = entries[0] if len(entries) == 1 else result
    return None if only.source else only


def _needed_as_integers(crash: Crash, start: Operation) -> bool:
    """Whether something recorded reads the integers as indices, labels, bits or Python numbers."""
    whole = {start.index}
    for one in crash.journal.operations.entries:
        places = [place for place, index in enumerate(one.parents) if index in whole]
        if not places:
            continue
        if one.name in _NEED_INTEGERS or (one.name in _INDEXING and places != [0]):
            return True
        if is_whole(one.dtype) and one.dtype != torch.bool:
            whole.add(one.index)
    return any(escape.operation in whole for escape in crash.journal.operations.escapes)
