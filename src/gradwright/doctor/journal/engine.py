"""Calls into the autograd engine: where, with which roots, and which nodes they ran through."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from gradwright.doctor.journal.notes import notes_of
from gradwright.doctor.journal.timeline import Timeline, next_node_number
from gradwright.graph import edges_of, engine_order, is_accumulator, reachable

MARK = (
    "gradwright"  # key in Node.metadata: which journal, and the last engine call that ran the node
)
KEPT = 10_000  # engine calls remembered at either end of a run
_graph_task = torch._C._current_graph_task_id  # -1 outside of the engine, in every thread
_Undisturbed = torch._C.DisableTorchFunction  # a look at a tensor is no business of its subclass


@dataclass(slots=True)
class EngineCall:
    """One `backward` or `grad`."""

    index: int  # counts from 0
    step: int  # optimizer steps finished before it
    place: int
    node: int  # number of the next node when it was called: older nodes existed already
    roots: tuple[int, ...]  # node numbers; -1 for a root without a graph
    retain_graph: bool
    create_graph: bool
    accumulate: bool  # `backward`, or `grad`
    recording: bool  # grad mode at the call
    nested: bool  # called from within another engine call (reentrant checkpointing)
    marked: bool = False
    raised: bool = False


class EngineCalls:
    """Stands in for `torch.autograd._engine_run_backward`, through which every call passes."""

    started = 0  # how many there were in this process: marks of an earlier one mean nothing

    def __init__(
        self,
        timeline_of_thread: Callable[[], Timeline | None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self.count = 0
        self.first: list[EngineCall] = []
        self.recent: deque[EngineCall] = deque(maxlen=KEPT)
        self.marking = True
        self.steps = 0
        self.failed_on: Timeline | None = None  # of the thread where a call raised last
        self.before_call: Callable[[], None] = lambda: None
        self.on_call: Callable[[], None] = lambda: None
        self._timeline_of_thread = timeline_of_thread
        self._on_failure = on_failure
        self._original: Callable[..., Any] | None = None
        self._stopped = False
        self._numbering = threading.Lock()  # two threads must not take the same number

    def start(self) -> None:
        """Take the engine's place."""
        EngineCalls.started += 1
        self._original = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
        torch.autograd._engine_run_backward = self._run  # type: ignore[attr-defined]

    def stop(self) -> None:
        """Step back, unless somebody else has taken the place since."""
        self._stopped = True
        if torch.autograd._engine_run_backward == self._run:  # type: ignore[attr-defined]
            torch.autograd._engine_run_backward = self._original  # type: ignore[attr-defined,assignment]

    def __getitem__(self, index: int) -> EngineCall | None:
        """The call with that index, if it is still remembered."""
        if index < len(self.first):
            return self.first[index]
        if not self.recent or not self.recent[0].index <= index <= self.recent[-1].index:
            return None
        return self.recent[index - self.recent[0].index]

    def remembered(self) -> list[EngineCall]:
        """All calls still remembered, in order."""
        tail = [call for call in self.recent if call.index >= len(self.first)]
        return [*self.first, *tail]

    def _run(self, t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        assert self._original is not None
        call = self._note(t_outputs, args, kwargs)
        try:
            result = self._original(t_outputs, *args, **kwargs)
        except BaseException:
            if call is not None:
                call.raised = True
                self.failed_on = self._timeline_of_thread()
            raise
        if call is not None and call.marked:
            # after the run: the call that fails must not hide the marks of the one that freed
            self._mark(t_outputs, args, call.index)
        return result

    def _note(
        self, outputs: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> EngineCall | None:
        if self._stopped:  # somebody wrapped us and still calls
            return None
        try:
            return self._write_down(outputs, args, kwargs)
        except Exception as error:
            self._on_failure(error)
            return None

    def _write_down(
        self, outputs: Sequence[Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> EngineCall:
        self.before_call()
        timeline = self._timeline_of_thread()
        if timeline is not None:
            timeline.flush()
        with _Undisturbed():
            roots = [_node_of(output) for output in outputs]
        place = timeline.current if timeline is not None else 0
        with self._numbering:
            call = EngineCall(
                index=self.count,
                step=self.steps,
                place=place,
                node=next_node_number(),
                roots=tuple(-1 if root is None else root._sequence_nr() for root in roots),
                retain_graph=bool(args[1]) if len(args) > 1 else False,
                create_graph=bool(args[2]) if len(args) > 2 else False,
                accumulate=bool(kwargs.get("accumulate_grad", False)),
                recording=torch.is_grad_enabled(),
                nested=_graph_task() != -1,
            )
            self.count += 1
            (self.first if len(self.first) < KEPT else self.recent).append(call)
        call.marked = self.marking
        self.on_call()
        return call

    def _mark(self, outputs: Sequence[Any], args: Sequence[Any], index: int) -> None:
        try:
            with _Undisturbed():
                roots = [root for root in map(_node_of, outputs) if root is not None]
                inputs = args[3] if len(args) > 3 else ()
            for node in needed_for(roots, inputs) if inputs else reachable(roots):
                if not is_accumulator(node):
                    notes_of(node)[MARK] = (EngineCalls.started, index)
        except Exception as error:
            self._on_failure(error)


def mark_of(node: Node) -> int | None:
    """Index of the last marking engine call that ran `node`."""
    if is_accumulator(node):
        return None
    mark = notes_of(node).get(MARK)
    if isinstance(mark, tuple) and mark[0] == EngineCalls.started:
        return int(mark[1])
    return None


def _node_of(output: torch.Tensor | GradientEdge) -> Node | None:
    return output.grad_fn if isinstance(output, torch.Tensor) else output.node


def needed_for(roots: list[Node], inputs: Sequence[Any]) -> set[Node]:
    """The nodes that a call with `inputs=` runs: those that lead to one of the inputs."""
    leading = {_target(item) for item in inputs}
    needed: set[Node] = set()
    for node in reversed(engine_order(roots)):
        if any(child in leading for child in edges_of(node)):
            leading.add(node)
            needed.add(node)
    return needed


def _target(item: torch.Tensor | GradientEdge) -> Node:
    with _Undisturbed():
        return get_gradient_edge(item).node if isinstance(item, torch.Tensor) else item.node
