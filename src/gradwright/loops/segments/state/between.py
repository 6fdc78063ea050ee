"""A recurrent state between two segments: detached, made a leaf, held to one structure."""

from typing import TypeVar

from torch import Tensor

from gradwright.loops.errors import StateError
from gradwright.loops.nested import map_tensors, outline, tensors_of
from gradwright.loops.segments.compact import compact

State = TypeVar("State")


def detached(state: State) -> State:
    """The same values in the same types, without a graph and without more memory than needed."""
    return map_tensors(state, lambda _, tensor: compact(tensor.detach()), "state")


def copied(state: State) -> State:
    """The same values in memory of their own: `run` may write into a state, as caches do."""
    return map_tensors(state, lambda _, tensor: tensor.clone(), "state")


def as_leaves(state: State) -> State:
    """A state whose floating tensors ask for their gradient, with nothing behind them."""

    def leaf(_: str, tensor: Tensor) -> Tensor:
        new = tensor.detach()
        return new.requires_grad_() if new.is_floating_point() or new.is_complex() else new

    return map_tensors(state, leaf, "state")


def gradients_of(state: object) -> dict[str, Tensor]:
    """What has arrived at the tensors of a state, by their names."""
    grads = {name: leaf.grad for name, leaf in tensors_of(state, "state").items() if leaf.is_leaf}
    return {name: grad for name, grad in grads.items() if grad is not None}


class OneStructure:
    """Holds the states of a run to the structure of the first."""

    def __init__(self) -> None:
        self._first: dict[str, str] | None = None

    def check(self, state: object, index: int) -> None:
        """Compare the state after segment `index`.

        Raises:
            StateError: A part is there that was not, or is of another type; the error names it.
        """
        found = outline(state, "state")
        if self._first is None:
            self._first = found
        for name in {**self._first, **found}:
            before, now = self._first.get(name, "not there"), found.get(name, "not there")
            if before != now:
                raise StateError(
                    f"`{name}` changed its type: it was {before} after the first segment, and is "
                    f"{now} after segment {index}. `run` must return the same structure each time."
                )
