"""What a graph node saved for backward, read without running anybody's hooks."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch
from torch.autograd.graph import Node

State = Literal["none", "live", "freed", "modified", "hooked"]


@dataclass(frozen=True, slots=True)
class SavedState:
    """Whether a node's saved tensors can still be used.

    `none`: it saved no tensor. `live`: usable. `freed`: a backward has released them.
    `modified`: one was changed in place after it was saved (`tensor` is that one, `message` is
    torch's sentence with the versions). `hooked`: reading would run an unpack hook, so nobody
    looked.
    """

    state: State
    tensor: torch.Tensor | None = None
    message: str = ""


def saved_state(node: Node) -> SavedState:
    """Look at what `node` saved."""
    if isinstance(node, torch._C._FunctionBase):
        return _of_custom_function(node)
    result = SavedState("none")
    for name in _saved_names(type(node)):
        found = _of_attribute(node, name)
        if found.state not in ("none", "live"):
            return found
        if found.state == "live":
            result = found
    return result


@lru_cache(maxsize=4096)
def _saved_names(kind: type) -> tuple[str, ...]:
    prefix = "_raw_saved_"
    names = (name for name in dir(kind) if name.startswith(prefix))
    return tuple(name.removeprefix(prefix) for name in names)


def _of_attribute(node: Node, name: str) -> SavedState:
    try:
        raw = getattr(node, f"_raw_saved_{name}")
        wrapped = raw if isinstance(raw, tuple | list) else (raw,)
        if any(getattr(item, "unpack_hook", None) is not None for item in wrapped):
            return SavedState("hooked")
        value = getattr(node, f"_saved_{name}")
    except RuntimeError as error:
        return _from_error(error, _raw_tensors(node, name))
    return SavedState("live" if _has_tensor(value) else "none")


def _of_custom_function(node: Node) -> SavedState:
    try:
        raw = node._raw_saved_tensors  # type: ignore[attr-defined]
        if any(getattr(item, "unpack_hook", None) is not None for item in raw or ()):
            return SavedState("hooked")
        value = node.saved_tensors  # type: ignore[attr-defined]
    except RuntimeError as error:
        return _from_error(error, _raw_tensors(node, "tensors"))
    return SavedState("live" if _has_tensor(value) else "none")


def _from_error(error: RuntimeError, tensors: list[torch.Tensor]) -> SavedState:
    message = str(error)
    if "a second time" in message or "already been freed" in message:
        return SavedState("freed")
    if "modified by an inplace operation" in message:
        changed = max(tensors, key=lambda tensor: tensor._version, default=None)
        return SavedState("modified", changed, message)
    return SavedState("none", message=message)


def _raw_tensors(node: Node, name: str) -> list[torch.Tensor]:
    """The tensors behind a saved slot, taken without the version check that raises."""
    try:
        raw = getattr(node, f"_raw_saved_{name}")
    except RuntimeError:
        return []
    wrapped = raw if isinstance(raw, tuple | list) else (raw,)
    values = (getattr(item, "data", None) for item in wrapped)
    return [value for value in values if isinstance(value, torch.Tensor)]


def _has_tensor(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(isinstance(item, torch.Tensor) for item in value)
    return isinstance(value, torch.Tensor)
