"""Nodes made outside of the first thread carry their place.

Each thread numbers its nodes from 0, so one number may belong to several nodes, and a node does not
tell its thread. Signed are the results of functions that the recorder sees; what is left is told by
its number alone (`threads.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.autograd.graph import Node

from gradwright.doctor.journal.notes import notes_of
from gradwright.doctor.journal.places import NOWHERE
from gradwright.doctor.journal.recorder import Recorder, _tensors_in
from gradwright.doctor.journal.timeline import MOST, Timeline, next_node_number

PLACE = "gradwright place"  # key in Node.metadata


class SigningRecorder(Recorder):
    """The function mode of a thread that is not the first one."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        first = next_node_number()
        result = super().__torch_function__(func, types, args, kwargs)
        if not self.resting and next_node_number() != first:
            try:
                with torch._C.DisableTorchFunctionSubclass():
                    self._sign(result, [*args, *(kwargs or {}).values()], first)
            except Exception as error:
                self._on_failure(error)
        return result

    def _sign(self, result: object, given: Sequence[object], first: int) -> None:
        timeline = self._timeline
        timeline.flush()
        for node in _new_nodes(result, given):
            number = node._sequence_nr()
            if first <= number < timeline.last and len(timeline.signed) < MOST:
                notes_of(node)[PLACE] = (timeline, timeline.current)
                timeline.signed.add(number)


def signature(node: Node) -> tuple[Timeline | None, int]:
    """What was written on `node`: the timeline of its thread, and its place."""
    found = notes_of(node).get(PLACE)
    return found if isinstance(found, tuple) else (None, NOWHERE)


def _new_nodes(result: object, given: Sequence[object]) -> Iterator[Node]:
    """Not those of tensors changed in place: asking a view for its node may make another one."""
    old = {id(tensor) for tensor in _tensors_in(given)}
    for output in _tensors_in((result,)):
        if id(output) not in old and output.grad_fn is not None:
            yield output.grad_fn
