"""Who keeps a tensor alive: a local variable, an attribute, an item of a list or dict."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import CellType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Literal

import torch

from gradwright.doctor.crash import Crash, CrashFrame
from gradwright.doctor.evidence.plain import attributes_of, items_of, said_key
from gradwright.doctor.kinds import is_a

_VISITS = 20_000  # objects looked at before giving up: an explanation takes 0.1 s at most
_DEPTH = 7
_ITEMS = 2_000

_MACHINERY = (
    "builtins",
    "gradwright.",
    "numpy",
    "torch._",
    "torch.autograd",
    "torch.cuda",
    "torch.fx",
    "torch.jit",
    "torch.optim",
    "torch.storage",
)

_ATOMS = {str, bytes, int, float, bool, complex, type(None)}

Kind = Literal["local", "global", "attribute", "item"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A way to reach a tensor from a user's variable, such as `model.text._bank`."""

    path: str
    kind: Kind  # of the last step
    tensor: torch.Tensor
    frame: CrashFrame
    root: str  # the variable where the path begins
    owner: object = None  # for an attribute: the object that has it
    attribute: str = ""
    container: object = None  # for an item: the list, tuple or dict
    container_path: str = ""
    attribute_path: str = ""  # path up to and including the last attribute

    @property
    def variable(self) -> str:
        """The variable or attribute to edit: the path without indices at its end."""
        return self.attribute_path or self.root


@dataclass(frozen=True, slots=True)
class _Step:
    value: object
    holder: Holder
    depth: int


def find_holders(crash: Crash, wanted: Callable[[torch.Tensor], bool]) -> list[Holder]:
    """Shortest ways from the user's variables to tensors that are `wanted`.

    Looks at the locals of the user's functions on the stack, innermost first, then at the
    globals of their modules. Never calls user code: attributes are read from `__dict__`.
    """
    found: list[Holder] = []
    seen: set[int] = set()
    todo: deque[_Step] = deque(_variables(crash))
    visits = 0
    while todo and visits < _VISITS:
        step = todo.popleft()
        visits += 1
        value = step.value
        if is_a(value, torch.Tensor):
            if wanted(value):
                found.append(replace(step.holder, tensor=value))
            continue
        if id(value) in seen or step.depth >= _DEPTH:
            continue
        seen.add(id(value))
        todo.extend(_inside(step))
    return sorted(found, key=_preference)


def _preference(holder: Holder) -> tuple[int, int]:
    kinds = {"attribute": 0, "item": 0, "local": 1, "global": 1}
    return (kinds[holder.kind], len(holder.path))


_NO_TENSOR = torch.empty(0)


def _variables(crash: Crash) -> Iterator[_Step]:
    frames = list(reversed(crash.user_frames))
    for frame in frames:
        for name, value in _locals(frame.frame):
            kind: Kind = "global" if frame.code.co_name == "<module>" else "local"
            yield _Step(value, Holder(name, kind, _NO_TENSOR, frame, name), 0)
    done: set[int] = set()
    for frame in frames:
        names = frame.frame.f_globals
        if id(names) in done or names is frame.frame.f_locals:
            continue
        done.add(id(names))
        for name, value in list(names.items()):
            if not name.startswith("__"):
                yield _Step(value, Holder(name, "global", _NO_TENSOR, frame, name), 0)


def _locals(frame: FrameType) -> list[tuple[str, object]]:
    return [(name, value) for name, value in frame.f_locals.items() if not name.startswith("__")]


def _inside(step: _Step) -> Iterator[_Step]:
    value = step.value
    if is_a(value, dict):
        yield from _items(step, items_of(value, _ITEMS))
    elif is_a(value, list, tuple, deque, set, frozenset):
        fields = getattr(type(value), "_fields", None)
        if is_a(value, tuple) and fields:
            for name, (_, item) in zip(fields, items_of(value, _ITEMS), strict=False):
                yield _attribute(step, name, item)
        else:
            yield from _items(step, items_of(value, _ITEMS))
    elif is_a(value, torch.nn.Module):
        yield from _module(step, value)
    elif is_a(value, FunctionType):
        yield from _closure(step, value)
    elif is_a(value, GeneratorType) and value.gi_frame is not None:
        for name, item in _locals(value.gi_frame):
            yield _attribute(step, name, item)
    elif _may_hold(value):
        for name, item in attributes_of(value):
            if type(item) not in _ATOMS:
                yield _attribute(step, name, item)


def _module(step: _Step, module: torch.nn.Module) -> Iterator[_Step]:
    for name, item in vars(module).items():
        if name in ("_modules", "_parameters", "_buffers"):
            for key, child in item.items():
                plain = is_a(module, torch.nn.ModuleList, torch.nn.Sequential)
                yield (
                    _item(step, int(key), child)
                    if plain and key.isdigit()
                    else _attribute(step, key, child)
                )
        elif not name.startswith(("_forward_", "_backward_", "_state_dict", "_load_state")):
            yield _attribute(step, name, item)


def _closure(step: _Step, function: FunctionType) -> Iterator[_Step]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        if isinstance(cell, CellType):
            try:
                value = cell.cell_contents
            except ValueError:  # an empty cell
                continue
            holder = Holder(name, "local", _NO_TENSOR, step.holder.frame, name)
            yield _Step(value, holder, step.depth + 1)


def _may_hold(value: object) -> bool:
    if is_a(value, type, ModuleType, str, bytes, int, float, torch.dtype):
        return False
    home = type(value).__module__ or ""
    return not home.startswith(_MACHINERY)


def _attribute(step: _Step, name: str, value: object) -> _Step:
    path = f"{step.holder.path}.{name}"
    holder = Holder(
        path,
        "attribute",
        _NO_TENSOR,
        step.holder.frame,
        step.holder.root,
        owner=step.value,
        attribute=name,
        attribute_path=path,
    )
    return _Step(value, holder, step.depth + 1)


def _items(step: _Step, pairs: list[tuple[object, object]]) -> Iterator[_Step]:
    for key, value in pairs:
        if type(value) not in _ATOMS:
            yield _item(step, key, value)


def _item(step: _Step, key: object, value: object) -> _Step:
    holder = Holder(
        f"{step.holder.path}[{said_key(key)}]"[:200],
        "item",
        _NO_TENSOR,
        step.holder.frame,
        step.holder.root,
        owner=step.holder.owner,
        attribute=step.holder.attribute,
        container=step.value,
        container_path=step.holder.path,
        attribute_path=step.holder.attribute_path,
    )
    return _Step(value, holder, step.depth + 1)
