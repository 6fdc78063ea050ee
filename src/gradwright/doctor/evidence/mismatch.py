"""Two tensors that do not fit together in type or device: which one is odd, where it came from."""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.lines import Line, line_of_frame, line_of_operation
from gradwright.doctor.evidence.sources import source_files
from gradwright.doctor.evidence.values import tensor_in_frame
from gradwright.doctor.journal import Operation
from gradwright.doctor.kinds import is_a
from gradwright.doctor.syntax import SourceTree, assigned_names, is_named, statement_of

_WORDS = {
    "double": torch.float64,
    "float64": torch.float64,
    "float": torch.float32,
    "float32": torch.float32,
    "half": torch.float16,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "long": torch.int64,
    "long int": torch.int64,
    "int64": torch.int64,
    "int": torch.int32,
    "int32": torch.int32,
    "byte": torch.uint8,
    "bool": torch.bool,
}
_NAMED = re.compile(
    r"\b(?:torch\.)?(double|float64|float32|float16|bfloat16|float|half|long int|long|int64"
    r"|int32|int|byte|bool)(?:tensor)?\b"
)
_EXPECTED = re.compile(
    r"(?:expected (?:scalar type|target dtype to be|dtype)?|scalar types:)[ :]*(\w+)"
)
_GOT = re.compile(r"(?:but got|found(?: dtype)?)[ :]*(?:torch\.)?(\w+?)(?:tensor)?\b")
_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The odd tensor among those of one operation."""

    odd: torch.Tensor | None
    found: str  # its type or device
    wanted: str
    source: Operation | None  # the first operation of its history with that type or device
    made: Line | None  # where that was
    used: Line | None  # the user's line that failed
    name: str  # the variable in the failing line
    origin: tuple[SourceTree, ast.Call] | None = None  # the array that became a tensor, probably


def named_dtypes(message: str) -> list[torch.dtype]:
    """The types an exception names, in order, each once."""
    found = [_WORDS[word] for word in _NAMED.findall(message.lower())]
    return list(dict.fromkeys(found))


def find_dtype_mismatch(crash: Crash) -> Mismatch | None:
    """The odd type of a forward operation, or of the graph below a failing backward."""
    named = named_dtypes(crash.message)
    near = list(tensors_near(crash))
    wanted = _wanted(crash, named, near)
    odd = _odd(crash, named, wanted)
    if wanted is None or odd is None:
        return None
    return _describe(
        crash,
        near,
        lambda one: one.dtype == odd,
        lambda one: one.dtype == odd,
        str(odd),
        str(wanted),
    )


def find_device_mismatch(crash: Crash) -> Mismatch | None:
    """The tensor that lies elsewhere than the parameters, or than most."""
    near = list(tensors_near(crash))
    devices = [str(one.device) for one in near if isinstance(one, torch.nn.Parameter)]
    devices += [str(one.device) for one in near if str(one.device) != "cpu"]
    if not devices:
        return None
    wanted = devices[0]
    odd = next((str(one.device) for one in near if str(one.device) != wanted), None)
    if odd is None:
        return None
    return _describe(
        crash, near, lambda one: str(one.device) == odd, lambda one: one.device == odd, odd, wanted
    )


def tensors_near(crash: Crash) -> Iterator[torch.Tensor]:
    """The tensors of the library functions that failed, innermost first, and of the user's line."""
    last = crash.raised_at
    if last is None:
        return
    inner = crash.frames[crash.frames.index(last) + 1 :]
    if crash.in_engine:
        return
    for frame in reversed(inner):
        yield from _inside(frame)
    for expression in _read_here(last):
        tensor = tensor_in_frame(last, expression)
        if tensor is not None:
            yield tensor


def _read_here(frame: CrashFrame) -> list[ast.expr]:
    """The names and attributes that the failing statement reads."""
    statement = line_of_frame(frame).statement
    if statement is None or isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return []
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    return [one for one in ast.walk(statement) if isinstance(one, kinds)]


def _inside(frame: CrashFrame) -> Iterator[torch.Tensor]:
    for value in list(frame.frame.f_locals.values()):
        for one in value if is_a(value, tuple, list) else (value,):
            if is_a(one, torch.Tensor):
                yield one
            elif is_a(one, torch.nn.Module):
                yield from one.parameters(recurse=False)


def _wanted(crash: Crash, named: list[torch.dtype], near: list[torch.Tensor]) -> torch.dtype | None:
    for match in _EXPECTED.finditer(crash.message.lower()):
        if match[1] in _WORDS:
            return _WORDS[match[1]]
    parameters = [one.dtype for one in near if isinstance(one, torch.nn.Parameter)]
    known = [one for one in (*parameters, torch.float32) if one in named]
    return known[0] if known else next(iter(named), None)


def _odd(crash: Crash, named: list[torch.dtype], wanted: torch.dtype | None) -> torch.dtype | None:
    match = _GOT.search(crash.message.lower())
    got = _WORDS.get(match[1]) if match is not None else None
    if got is not None and got != wanted:
        return got
    return next((one for one in named if one != wanted), None)


def _describe(
    crash: Crash,
    near: list[torch.Tensor],
    is_odd: Callable[[torch.Tensor], bool],
    made_odd: Callable[[Operation], bool],
    found: str,
    wanted: str,
) -> Mismatch | None:
    odd = [one for one in near if is_odd(one)]
    counted = "int" in wanted
    if counted:  # labels and indices come last, and never train
        last = [one for frame in crash.frames[-1:] for one in _inside(frame) if is_odd(one)]
        odd = [*reversed(last), *odd]

    def rank(one: torch.Tensor) -> tuple[bool, bool, bool]:
        trains = isinstance(one, torch.nn.Parameter)
        return trains, counted and one.requires_grad, not _name(crash, one)

    odd.sort(key=rank)
    tensor = odd[0] if odd else None
    operations = crash.journal.operations
    starts = [operations.of(one) for one in ([tensor] if tensor is not None else crash.roots())]
    source = next((_source(crash, one, made_odd) for one in starts if one is not None), None)
    made = line_of_operation(crash.journal, source) if source is not None else None
    used = line_of_frame(crash.raised_at) if crash.raised_at is not None else None
    if tensor is None and source is None:
        return None
    name = _name(crash, tensor)
    if source is not None and source.source:
        known, value = _variable_of(crash, source)
        tensor = tensor if tensor is not None else value
        origin = find_array(crash, known or name)
        return Mismatch(tensor, found, wanted, source, made, used, name or known, origin)
    return Mismatch(tensor, found, wanted, source, made, used, name)


def _variable_of(crash: Crash, source: Operation) -> tuple[str, torch.Tensor | None]:
    """The user's variable for a tensor that came from outside of torch."""
    for frame in reversed(crash.user_frames):
        for name, value in list(frame.frame.f_locals.items()):
            if is_a(value, torch.Tensor) and crash.journal.operations.of(value) is source:
                return name, value
    return "", None


def find_array(crash: Crash, name: str) -> tuple[SourceTree, ast.Call] | None:
    """The one unconverted `from_numpy`, or the one that is assigned to this name."""
    found = [
        (tree, one)
        for tree in source_files(crash)
        for one in ast.walk(tree.root)
        if isinstance(one, ast.Call)
        and is_named(tree, one.func, {"from_numpy"})
        and not isinstance(tree.parents[one], ast.Attribute)
    ]
    if len(found) > 1:
        last = name.rpartition(".")[2]
        found = [pair for pair in found if last in _assigned(*pair)]
    return found[0] if len(found) == 1 else None


def _assigned(tree: SourceTree, call: ast.Call) -> list[str]:
    statement = statement_of(tree, call)
    names = assigned_names(statement) if statement is not None else []
    return [one.rpartition(".")[2] for one in names]


def _source(
    crash: Crash, start: Operation, is_odd: Callable[[Operation], bool]
) -> Operation | None:
    """Where the odd kind enters the history: odd itself, computed from nothing odd."""
    operations = crash.journal.operations
    entries: list[Operation] = []
    for number, one in enumerate(operations.ancestors(start)):
        if number > _STEPS:
            break
        parents = [operations[index] for index in one.parents]
        if is_odd(one) and not any(is_odd(parent) for parent in parents if parent is not None):
            entries.append(one)
    entries.sort(key=lambda one: (one.requires_grad, bool(one.source)))
    return entries[0] if entries else None


def _name(crash: Crash, tensor: torch.Tensor | None) -> str:
    frame = crash.raised_at
    if frame is None or tensor is None:
        return ""
    for expression in _read_here(frame):
        if tensor_in_frame(frame, expression) is tensor:
            return ast.unparse(expression)
    return ""
