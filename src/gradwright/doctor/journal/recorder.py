"""The function mode that writes down torch operations. It must leave no trace in the results."""

import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradwright.doctor.journal.operations import (
    Cut,
    Escape,
    Freeze,
    Operations,
    Switch,
    Write,
    storage_of,
)
from gradwright.doctor.journal.timeline import Timeline, next_node_number

_PROPERTIES = {"data", "T", "mT", "H", "mH", "real", "imag", "grad"}
_COPIES = {"tensor", "new_tensor", "as_tensor", "asarray", "from_numpy"}
_ESCAPES = {"item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__array__"}
_SILENT = {"requires_grad_", "__set__", "retain_grad", "register_hook"}

# a call's tensors, the version and `requires_grad` of each, and the number of the next node
Before = tuple[list[torch.Tensor], list[tuple[int, bool]], int]
_DEPTH = 3  # lists within lists that are searched for tensors
# our own looks at tensors must not be heard by the program's tensor subclasses
_Undisturbed = torch._C.DisableTorchFunctionSubclass


class Recorder(TorchFunctionMode):
    """The function mode of one thread. It sits at the bottom of torch's stack of modes."""

    def __init__(
        self,
        operations: Operations,
        timeline: Timeline,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__()
        self._operations = operations
        self._timeline = timeline
        self._on_failure = on_failure
        self.inside = 0  # how many of torch's functions it is waiting for
        self.resting = False
        self.placed = False  # whether it is in torch's stack of modes

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = "" if self.resting else self._name(func)
        if not name:
            return func(*args, **kwargs)
        before = self._before(args, kwargs)
        self.inside += 1
        try:
            result = func(*args, **kwargs)
        finally:
            self.inside -= 1
        if before is not None:
            try:
                with _Undisturbed():
                    self._after(name, args, result, before)
            except Exception as error:
                self._on_failure(error)
        return result

    def _name(self, func: object) -> str:
        try:
            return _name_of(func)
        except Exception as error:
            self._on_failure(error)
            return ""

    def _before(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Before | None:
        try:
            with _Undisturbed():
                tensors = list(_tensors_in(args))
                tensors.extend(_tensors_in(tuple(kwargs.values())))
                states = [(_version(tensor), tensor.requires_grad) for tensor in tensors]
                return tensors, states, next_node_number()
        except Exception as error:
            self._on_failure(error)
            return None

    def _after(
        self,
        name: str,
        args: Sequence[Any],
        result: Any,
        before: Before,
    ) -> None:
        tensors, states, first_node = before
        place = self._timeline.current
        if name in ("_set_grad_enabled", "set_grad_enabled"):
            self._switch(bool(args[0]), place)
            return
        if name in _SILENT:
            self._freeze(name, args, place)
            return
        pairs = list(zip(tensors, states, strict=True))
        written = [tensor for tensor, old in pairs if _version(tensor) != old[0]]
        for tensor in written:
            self._write(name, place, tensor, first_node)
        outputs = list(_tensors_in((result,)))
        if not outputs and not written:
            if name in _ESCAPES and tensors:
                self._escape(name, place, tensors[0])
            return
        cut = [tensor for tensor, old in pairs if old[1] and not tensor.requires_grad]  # detach_
        required_grad = any(required for _, required in states)
        self._record(name, place, tensors, outputs, [*written, *cut], first_node, required_grad)

    def _record(
        self,
        name: str,
        place: int,
        inputs: list[torch.Tensor],
        outputs: list[torch.Tensor],
        written: list[torch.Tensor],
        first_node: int,
        required_grad: bool,
    ) -> None:
        operations = self._operations
        parents = tuple(dict.fromkeys(self._index_of(tensor, place) for tensor in inputs))
        last_node = next_node_number()
        code, instruction = self._user_position()
        changed = {id(tensor) for tensor in written}
        unchanged = {id(tensor) for tensor in inputs} - changed
        for output in {id(t): t for t in (*outputs, *written)}.values():
            if id(output) in unchanged:
                continue  # `.to`, dropout in eval: the very tensor that came in
            operation = operations.add(name, place, output)
            operation.parents = parents
            operation.view = any(storage_of(one) == operation.storage for one in inputs)
            operation.first_node, operation.last_node = first_node, last_node
            operation.code, operation.instruction = code, instruction
            if not output.requires_grad:
                operation.cut = _cut(name, output, inputs) if required_grad else ""
                if not torch.is_grad_enabled():
                    operation.switch = operations.switches[-1] if operations.switches else None

    def _index_of(self, tensor: torch.Tensor, place: int) -> int:
        """The record of an input; a tensor never met before becomes a source."""
        found = self._operations.of(tensor)
        if found is not None and not (tensor.requires_grad and not found.requires_grad):
            return found.index
        operation = self._operations.add("", place, tensor)
        if found is not None:
            operation.parents = (found.index,)
        if isinstance(tensor, torch.nn.Parameter):
            operation.source = "parameter"
        elif tensor.is_leaf:
            operation.source = "leaf" if tensor.requires_grad else "data"
        else:
            operation.source = "unseen"
        return operation.index

    def _switch(self, recording: bool, place: int) -> None:
        switches = self._operations.switches
        if not recording or switches:
            switches.append(Switch(recording, place))
        self._operations.keep_in_bounds()

    def _freeze(self, name: str, args: Sequence[Any], place: int) -> None:
        if name not in ("requires_grad_", "__set__") or not args:
            return
        tensor = args[0]
        value = args[1] if len(args) > 1 else True
        if isinstance(value, bool) and isinstance(tensor, torch.Tensor):
            self._operations.freezes.append(Freeze(tensor, value, place))
            self._operations.keep_in_bounds()

    def _write(self, name: str, place: int, tensor: torch.Tensor, node: int) -> None:
        write = Write(name, place, tensor, node)
        write.code, write.instruction = self._user_position()
        self._operations.writes.append(write)
        self._operations.keep_in_bounds()

    def _escape(self, name: str, place: int, tensor: torch.Tensor) -> None:
        index = self._index_of(tensor, place)
        self._operations.escapes.append(Escape(name, place, index, tensor.requires_grad))
        self._operations.keep_in_bounds()

    def _user_position(self) -> tuple[object, int]:
        frame: FrameType | None = sys._getframe(1)
        is_user = self._operations.is_user
        while frame is not None:
            if is_user(frame.f_code.co_filename):
                return frame.f_code, frame.f_lasti
            frame = frame.f_back
        return None, -1


def _cut(name: str, output: torch.Tensor, inputs: list[torch.Tensor]) -> Cut:
    if name in ("detach", "detach_", "data"):
        return "data" if name == "data" else "detach"
    if not torch.is_grad_enabled():
        return "inference" if torch.is_inference_mode_enabled() else "recording-off"
    if name in _COPIES:
        return "copy"
    if not (output.is_floating_point() or output.is_complex()):
        return "integer"
    return "no-derivative"


def _name_of(func: object) -> str:
    """The name of a torch function; empty for a mere look at an attribute."""
    name = getattr(func, "__name__", "") or "?"
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        return name if name in _PROPERTIES else ""
    return str(name)


def _tensors_in(values: Sequence[Any], depth: int = 0) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth < _DEPTH and isinstance(value, tuple | list):
            # read as plain list or tuple: a subclass may run the program's code
            items: Sequence[Any]
            if isinstance(value, list):
                items = list.__getitem__(value, slice(None))
            else:
                items = tuple.__getitem__(value, slice(None))
            if items and not isinstance(items[0], int | float | complex | str):
                yield from _tensors_in(items, depth + 1)


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version
